//! A device: its protection domain, its registered memory, and memory windows.
//!
//! One device serves all queue pairs of the process that use it. It is closed with the last one, so
//! that a device which is removed from the machine does not stay open.

use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_uint};
use std::io;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use ring::Memory;

use super::ffi;
use super::library::Library;
use super::removal::Removal;
use crate::provider::Network;

/// The open devices.
pub(super) struct Devices {
    library: &'static Library,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    open: Vec<Weak<Device>>,
    /// Addresses of contexts that are closed and must not be used any more.
    closed: Vec<usize>,
}

impl Devices {
    pub(super) fn new(library: &'static Library) -> Self {
        Self {
            library,
            known: Mutex::default(),
        }
    }

    pub(super) fn library(&self) -> &'static Library {
        self.library
    }

    /// The device of an identifier's context.
    ///
    /// # Safety
    /// An identifier that is bound to the device keeps it open during the call.
    pub(super) unsafe fn of(&self, context: NonNull<ffi::Context>) -> io::Result<Arc<Device>> {
        let mut known = lock(&self.known);
        if known.closed.contains(&context.addr().get()) {
            return Err(io::ErrorKind::NotConnected.into());
        }
        let open = &mut known.open;
        open.retain(|device| device.strong_count() > 0);
        let devices = open.iter().filter_map(Weak::upgrade);
        if let Some(device) = devices.into_iter().find(|device| device.context == context) {
            return Ok(device);
        }
        // SAFETY: the caller guarantees that the device is open.
        let device = Arc::new(unsafe { Device::new(self.library, context) }?);
        open.push(Arc::downgrade(&device));
        Ok(device)
    }

    /// Closes a device that is removed from the machine. If it has users, this raises their removal
    /// flag and returns `None`. Otherwise it calls `close`, prevents further use of the context,
    /// and returns the result.
    pub(super) fn close_removed(
        &self,
        context: NonNull<ffi::Context>,
        close: impl FnOnce() -> io::Result<()>,
    ) -> Option<io::Result<()>> {
        let mut known = lock(&self.known);
        let mut devices = known.open.iter().filter_map(Weak::upgrade);
        if let Some(device) = devices.find(|device| device.context == context) {
            device.removal.raise();
            return None;
        }
        drop(devices);
        known.closed.push(context.addr().get());
        Some(close())
    }

    /// Forgets the closed contexts, which are freed; other contexts may have their addresses now.
    pub(super) fn forget_closed(&self) {
        lock(&self.known).closed.clear();
    }
}

/// An open device.
pub(super) struct Device {
    library: &'static Library,
    context: NonNull<ffi::Context>,
    pd: NonNull<ffi::Pd>,
    /// The library's list of open devices. The library closes no device before the list is
    /// returned.
    hold: NonNull<*mut ffi::Context>,
    capabilities: Capabilities,
    /// Registrations of long-lived memory, by the address of its first byte.
    known: Mutex<HashMap<usize, KnownMemory>>,
    /// Raised when the device must not be used any more.
    removal: Removal,
}

// SAFETY: libibverbs is thread-safe. The pointers refer to objects of the library that only `drop`
// frees; a mutex protects the state of this type.
unsafe impl Send for Device {}
// SAFETY: as above.
unsafe impl Sync for Device {}

/// The capabilities of a device, as far as this crate uses them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Capabilities {
    pub(super) network: Network,
    pub(super) queue_entries: u32,
    pub(super) completion_entries: u32,
    pub(super) pieces: u32,
    /// Number of outgoing and of incoming READs in flight.
    pub(super) initiator_depth: u8,
    pub(super) responder_resources: u8,
    pub(super) has_windows: bool,
    /// Number of regions that can be registered or have windows.
    pub(super) regions: u32,
    /// The kernel executes all posts and checks the credentials of the thread: see
    /// `call_thread.rs`.
    pub(super) is_software: bool,
}

/// The order of the fields matters: the registration ends before the memory is freed.
struct KnownMemory {
    registration: Mr,
    memory: Memory,
}

impl Device {
    /// # Safety
    /// As [`Devices::of`].
    unsafe fn new(library: &'static Library, context: NonNull<ffi::Context>) -> io::Result<Self> {
        let hold = library.calls.run(|| {
            // SAFETY: the null pointer requests no count; returns null or a list that the caller
            // returns.
            let hold = unsafe { (library.get_devices)(std::ptr::null_mut()) };
            NonNull::new(hold).ok_or_else(io::Error::last_os_error)
        })?;
        // SAFETY: the caller guarantees that the device is open, and from here on the list keeps it
        // open.
        let result = unsafe { capabilities(library, context) }.and_then(|capabilities| {
            let removal = Removal::new()?;
            // SAFETY: the device is open; returns null or a domain that the caller frees.
            let pd = unsafe { (library.alloc_pd)(context.as_ptr()) };
            let pd = NonNull::new(pd).ok_or_else(io::Error::last_os_error)?;
            Ok((pd, capabilities, removal))
        });
        let (pd, capabilities, removal) = result.inspect_err(|_| {
            // SAFETY: returned once.
            unsafe { (library.free_devices)(hold.as_ptr()) };
        })?;
        Ok(Self {
            library,
            context,
            pd,
            hold,
            capabilities,
            known: Mutex::default(),
            removal,
        })
    }

    pub(super) fn library(&self) -> &'static Library {
        self.library
    }

    pub(super) fn context(&self) -> NonNull<ffi::Context> {
        self.context
    }

    pub(super) fn pd(&self) -> *mut ffi::Pd {
        self.pd.as_ptr()
    }

    pub(super) fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    /// The removal flag of the device, which `watch.rs` raises.
    pub(super) fn removal(&self) -> &Removal {
        &self.removal
    }

    fn ops(&self) -> &ffi::ContextOps {
        // SAFETY: the device is open as long as `self`, and its table does not change.
        unsafe { &(*self.context.as_ptr()).ops }
    }

    /// The registration of long-lived memory. The first use registers it, and it stays registered
    /// until all other references to the memory are dropped.
    pub(super) fn known(&self, memory: &Memory) -> io::Result<Keys> {
        let mut known = lock(&self.known);
        let start = memory.start().as_ptr();
        if let Some(found) = known.get(&start.addr()) {
            return Ok(found.registration.keys());
        }
        known.retain(|_, known| !known.memory.is_last());
        // Local permissions only: the peer accesses the memory through windows or not at all.
        let access = ffi::ACCESS_LOCAL_WRITE | self.window_access();
        // SAFETY: `KnownMemory` keeps the memory longer than the registration.
        let registration = unsafe { self.register(start, memory.bytes(), access) }?;
        let keys = registration.keys();
        let memory = memory.clone();
        let entry = KnownMemory {
            registration,
            memory,
        };
        known.insert(start.addr(), entry);
        Ok(keys)
    }

    /// Ends the registrations of memory without other references.
    pub(super) fn forget_unused(&self) {
        lock(&self.known).retain(|_, known| !known.memory.is_last());
    }

    /// The permission to bind windows to a region, if the device supports windows.
    pub(super) fn window_access(&self) -> c_int {
        if self.capabilities.has_windows {
            ffi::ACCESS_MW_BIND
        } else {
            0
        }
    }

    /// # Safety
    /// The memory stays allocated as long as the result. The device writes to it only as `access`
    /// permits, and the owner of the memory takes that into account when it reads.
    unsafe fn register(&self, start: *mut u8, bytes: usize, access: c_int) -> io::Result<Mr> {
        // SAFETY: the domain is alive; the caller guarantees that the memory is.
        let raw = unsafe { (self.library.reg_mr)(self.pd(), start.cast(), bytes, access) };
        let raw = NonNull::new(raw).ok_or_else(|| cannot_register(bytes))?;
        Ok(Mr {
            library: self.library,
            raw,
        })
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        lock(&self.known).clear();
        // SAFETY: all objects of the domain hold the device, so they are destroyed; the
        // registrations in `known` are, too.
        let result = unsafe { (self.library.dealloc_pd)(self.pd()) };
        assert_eq!(
            result, 0,
            "nothing is left in a protection domain that ends"
        );
        // SAFETY: returned once; the device is not used after this.
        unsafe { (self.library.free_devices)(self.hold.as_ptr()) };
    }
}

fn cannot_register(bytes: usize) -> io::Error {
    let error = io::Error::last_os_error();
    // Users other than root have a limit of locked memory, which is the usual reason for this
    // error.
    let hint = match error.kind() {
        io::ErrorKind::OutOfMemory => " (see the limit of locked memory, `ulimit -l`)",
        _ => "",
    };
    let text = format!("cannot register {bytes} bytes{hint}: {error}");
    io::Error::new(error.kind(), text)
}

/// The keys of a registration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keys {
    pub(super) local: u32,
    pub(super) remote: u32,
    pub(super) raw: NonNull<ffi::Mr>,
}

/// A registration in a domain that lives longer.
struct Mr {
    library: &'static Library,
    raw: NonNull<ffi::Mr>,
}

// SAFETY: libibverbs is thread-safe; the object is only freed by `drop`.
unsafe impl Send for Mr {}

impl Mr {
    fn keys(&self) -> Keys {
        // SAFETY: alive until `drop`; nothing changes it.
        let mr = unsafe { self.raw.as_ref() };
        Keys {
            local: mr.lkey,
            remote: mr.rkey,
            raw: self.raw,
        }
    }
}

impl Drop for Mr {
    fn drop(&mut self) {
        // SAFETY: ended once; windows into it are freed (their owner guarantees it).
        let result = unsafe { (self.library.dereg_mr)(self.raw.as_ptr()) };
        // Otherwise the device would keep access to memory that is about to be freed.
        assert_eq!(result, 0, "a registration without windows can be ended");
    }
}

/// A registration for one operation or one exposure.
///
/// The order of the fields matters: the registration ends before the device is closed.
pub(super) struct Registration {
    mr: Mr,
    _device: Arc<Device>,
}

impl Registration {
    /// Registers `bytes` bytes; the number is not 0.
    ///
    /// # Safety
    /// The memory stays allocated as long as the result. With permission to write, nothing else
    /// uses the memory.
    pub(super) unsafe fn new(
        device: &Arc<Device>,
        start: *const u8,
        bytes: usize,
        access: c_int,
    ) -> io::Result<Self> {
        // SAFETY: the caller guarantees the contract of `register`, which is this function's.
        let mr = unsafe { device.register(start.cast_mut(), bytes, access) }?;
        Ok(Self {
            mr,
            _device: Arc::clone(device),
        })
    }

    pub(super) fn keys(&self) -> Keys {
        self.mr.keys()
    }
}

/// A type 2 memory window: a key for a part of a region. Either peer can invalidate it.
pub(super) struct Window {
    raw: NonNull<ffi::Mw>,
    device: Arc<Device>,
}

impl Window {
    /// A window that is not bound.
    pub(super) fn new(device: &Arc<Device>) -> io::Result<Self> {
        let unsupported = || io::Error::from(io::ErrorKind::Unsupported);
        let alloc = device.ops().alloc_mw.ok_or_else(unsupported)?;
        // SAFETY: the domain is alive; returns null or a window that the caller frees.
        let raw = unsafe { alloc(device.pd(), ffi::MW_TYPE_2) };
        let raw = NonNull::new(raw).ok_or_else(io::Error::last_os_error)?;
        Ok(Self {
            raw,
            device: Arc::clone(device),
        })
    }

    pub(super) fn raw(&self) -> NonNull<ffi::Mw> {
        self.raw
    }

    /// The key for the next bind of the window. Its low byte must differ from the last key.
    pub(super) fn next_key(&self) -> u32 {
        // SAFETY: alive until `drop`; only the thread of the owner changes it.
        let key = unsafe { self.raw.as_ref() }.rkey;
        (key & !0xff) | (key.wrapping_add(1) & 0xff)
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        let dealloc = self.device.ops().dealloc_mw;
        let dealloc = dealloc.expect("a device with windows can free them");
        // SAFETY: freed once. This also invalidates a bound window.
        let result = unsafe { dealloc(self.raw.as_ptr()) };
        assert_eq!(result, 0, "a window can be freed");
    }
}

/// The network of a device.
///
/// # Safety
/// The device is open during the call.
pub(super) unsafe fn network(context: NonNull<ffi::Context>) -> Network {
    // SAFETY: an open context has a device.
    let device = unsafe { context.as_ref() }.device;
    // SAFETY: the device is listed as long as a context of it is open.
    let transport_type = unsafe { (*device).transport_type };
    // SAFETY: the device is listed, and nothing changes its name.
    let name = text(unsafe { &(*device).name });
    match transport_type {
        ffi::TRANSPORT_IWARP => Network::Iwarp,
        _ if has_ethernet(&name) => Network::Roce,
        _ => Network::InfiniBand,
    }
}

/// Whether the first port of a device is on an Ethernet, by the kernel's file about it
/// (Documentation/ABI/stable/sysfs-class-infiniband of Linux).
fn has_ethernet(device: &str) -> bool {
    let file = format!("/sys/class/infiniband/{device}/ports/1/link_layer");
    std::fs::read_to_string(file).is_ok_and(|layer| layer.trim() == "Ethernet")
}

/// The name of a device, for messages.
pub(super) fn name(device: &Device) -> String {
    // SAFETY: an open context has a device.
    let raw = unsafe { device.context.as_ref() }.device;
    // SAFETY: the device is listed as long as a context of it is open.
    text(unsafe { &(*raw).name })
}

/// The name of the device file, for example `uverbs0`.
///
/// # Safety
/// The device is open during the call.
pub(super) unsafe fn file_name(context: NonNull<ffi::Context>) -> String {
    // SAFETY: an open context has a device.
    let raw = unsafe { context.as_ref() }.device;
    // SAFETY: the device is listed as long as a context of it is open.
    text(unsafe { &(*raw).dev_name })
}

/// The text before the terminating zero.
fn text(name: &[c_char]) -> String {
    let bytes = name.iter().take_while(|byte| **byte != 0);
    // `c_char` is signed on some machines.
    let bytes: Vec<u8> = bytes.map(|byte| byte.to_ne_bytes()[0]).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// # Safety
/// The device is open during the call.
unsafe fn capabilities(
    library: &'static Library,
    context: NonNull<ffi::Context>,
) -> io::Result<Capabilities> {
    // SAFETY: all fields are numbers or arrays of them.
    let mut attr: ffi::DeviceAttr = unsafe { std::mem::zeroed() };
    // SAFETY: the device is open, and the attributes have the size that the call writes.
    let result = unsafe { (library.query_device)(context.as_ptr(), &raw mut attr) };
    if result != 0 {
        return Err(io::Error::from_raw_os_error(result.abs()));
    }
    // SAFETY: the device is open.
    let network = unsafe { network(context) };
    let window_types: c_uint = ffi::DEVICE_MEM_WINDOW_TYPE_2A | ffi::DEVICE_MEM_WINDOW_TYPE_2B;
    let has_windows = attr.device_cap_flags & window_types != 0 && attr.max_mw > 0;
    let regions = if has_windows {
        attr.max_mw
    } else {
        attr.max_mr
    };
    Ok(Capabilities {
        network,
        queue_entries: count(attr.max_qp_wr),
        completion_entries: count(attr.max_cqe),
        pieces: count(attr.max_sge).max(1),
        initiator_depth: depth(attr.max_qp_init_rd_atom),
        responder_resources: depth(attr.max_qp_rd_atom),
        has_windows,
        regions: count(regions),
        is_software: SOFTWARE.contains(&attr.vendor_id),
    })
}

/// The vendor ids of rxe and siw (Linux: `rxe_param.h`, `siw.h`).
const SOFTWARE: [u32; 2] = [0xff_ffff, 0x62_6d74];

fn count(value: c_int) -> u32 {
    u32::try_from(value).unwrap_or(0)
}

/// RDMA-CM stores it in one byte, in which 255 has a special meaning.
fn depth(value: c_int) -> u8 {
    u8::try_from(value.clamp(0, 254)).expect("within a byte")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
