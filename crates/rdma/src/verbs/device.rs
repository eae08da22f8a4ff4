//! A device: its protection domain, the memory it was told of, and the windows into that.
//!
//! One device serves all queue pairs of the process on it. It is let go of with the last one, so
//! that a device which is taken out of the machine is not kept.

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

/// The devices that have queue pairs.
pub(super) struct Devices {
    library: &'static Library,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    open: Vec<Weak<Device>>,
    /// Addresses of contexts that must not be used any more.
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
        // SAFETY: the caller's promise.
        let device = Arc::new(unsafe { Device::new(self.library, context) }?);
        open.push(Arc::downgrade(&device));
        Ok(device)
    }

    /// Tells the users of a device to let go of it. Where there are none, nor will be, it is
    /// closed; what came of that.
    pub(super) fn part(
        &self,
        context: NonNull<ffi::Context>,
        close: impl FnOnce() -> io::Result<()>,
    ) -> Option<io::Result<()>> {
        let mut known = lock(&self.known);
        let mut devices = known.open.iter().filter_map(Weak::upgrade);
        if let Some(device) = devices.find(|device| device.context == context) {
            device.gone.raise();
            return None;
        }
        drop(devices);
        known.closed.push(context.addr().get());
        Some(close())
    }

    /// The contexts that were closed are no more; others may be where they were.
    pub(super) fn forget_closed(&self) {
        lock(&self.known).closed.clear();
    }
}

/// A device that is open.
pub(super) struct Device {
    library: &'static Library,
    context: NonNull<ffi::Context>,
    pd: NonNull<ffi::Pd>,
    /// The library's list of open devices: it closes none of them before the list is returned.
    hold: NonNull<*mut ffi::Context>,
    capabilities: Capabilities,
    /// Memory that the device knows, by its first byte.
    known: Mutex<HashMap<usize, KnownMemory>>,
    /// Nobody must use it any more.
    gone: Removal,
}

// SAFETY: libibverbs is thread-safe. The pointers are to objects of the library that only `drop`
// frees; what changes behind the library's back is behind a mutex.
unsafe impl Send for Device {}
// SAFETY: as above.
unsafe impl Sync for Device {}

/// What a device can do, as far as it matters here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Capabilities {
    pub(super) network: Network,
    pub(super) queue_entries: u32,
    pub(super) completion_entries: u32,
    pub(super) pieces: u32,
    /// READs of ours at one time, and of the peer.
    pub(super) initiator_depth: u8,
    pub(super) responder_resources: u8,
    pub(super) has_windows: bool,
    /// Regions that can be registered or have windows.
    pub(super) regions: u32,
    /// Posts go through the kernel, which looks at the credentials: see `errands.rs`.
    pub(super) is_software: bool,
}

/// The order of the fields matters: the registration ends before the memory does.
struct KnownMemory {
    registration: Mr,
    memory: Memory,
}

impl Device {
    /// # Safety
    /// As [`Devices::of`].
    unsafe fn new(library: &'static Library, context: NonNull<ffi::Context>) -> io::Result<Self> {
        let hold = library.errands.run(|| {
            // SAFETY: no count is asked for; null or a list that is ours to return.
            let hold = unsafe { (library.get_devices)(std::ptr::null_mut()) };
            NonNull::new(hold).ok_or_else(io::Error::last_os_error)
        })?;
        // SAFETY: the device is open, by the caller's promise, and from here on by the list.
        let result = unsafe { capabilities(library, context) }.and_then(|capabilities| {
            let gone = Removal::new()?;
            // SAFETY: the device is open; null or a domain that is ours to free.
            let pd = unsafe { (library.alloc_pd)(context.as_ptr()) };
            let pd = NonNull::new(pd).ok_or_else(io::Error::last_os_error)?;
            Ok((pd, capabilities, gone))
        });
        let (pd, capabilities, gone) = result.inspect_err(|_| {
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
            gone,
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

    /// Whether it is taken out of the machine, as far as `watch.rs` has seen.
    pub(super) fn gone(&self) -> &Removal {
        &self.gone
    }

    fn ops(&self) -> &ffi::ContextOps {
        // SAFETY: the device is open as long as `self`, and its table does not change.
        unsafe { &(*self.context.as_ptr()).ops }
    }

    /// The registration of memory that is used again and again: made at the first use, kept as
    /// long as anybody else has the memory.
    pub(super) fn known(&self, memory: &Memory) -> io::Result<Keys> {
        let mut known = lock(&self.known);
        let start = memory.start().as_ptr();
        if let Some(found) = known.get(&start.addr()) {
            return Ok(found.registration.keys());
        }
        known.retain(|_, known| !known.memory.is_last());
        // Local rights only: the peer reaches it through windows, or not at all.
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

    /// Lets go of memory that nobody else has any more.
    pub(super) fn forget_unused(&self) {
        lock(&self.known).retain(|_, known| !known.memory.is_last());
    }

    /// The right to open windows into a region, where the device has windows.
    pub(super) fn window_access(&self) -> c_int {
        if self.capabilities.has_windows {
            ffi::ACCESS_MW_BIND
        } else {
            0
        }
    }

    /// # Safety
    /// The memory is there as long as the result, and written by the device only within the
    /// access: its owner reads it with that in mind.
    unsafe fn register(&self, start: *mut u8, bytes: usize, access: c_int) -> io::Result<Mr> {
        // SAFETY: the domain is alive; the memory is, by the caller's promise.
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
        // SAFETY: all that was made in the domain holds the device, and is gone; so is `known`.
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
    // Locked memory is limited for users who are not root: the usual reason for this one.
    let hint = match error.kind() {
        io::ErrorKind::OutOfMemory => " (see the limit of locked memory, `ulimit -l`)",
        _ => "",
    };
    let text = format!("{bytes} bytes cannot be registered{hint}: {error}");
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
        // SAFETY: alive until `drop`; nobody changes it.
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
        // SAFETY: ended once; windows into it are gone (their owner sees to that).
        let result = unsafe { (self.library.dereg_mr)(self.raw.as_ptr()) };
        // Else the device would go on to know memory that is about to be freed.
        assert_eq!(result, 0, "a registration without windows can be ended");
    }
}

/// A registration for the length of an operation, or of an exposure.
///
/// The order of the fields matters: the registration ends before the device does.
pub(super) struct Registration {
    mr: Mr,
    _device: Arc<Device>,
}

impl Registration {
    /// Tells the device of `bytes` bytes, which are not none.
    ///
    /// # Safety
    /// The memory is there as long as the result. With rights to write nobody uses it otherwise.
    pub(super) unsafe fn new(
        device: &Arc<Device>,
        start: *const u8,
        bytes: usize,
        access: c_int,
    ) -> io::Result<Self> {
        // SAFETY: the caller's promise.
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

/// A type 2 memory window: a key to a part of a region, which either side can end.
pub(super) struct Window {
    raw: NonNull<ffi::Mw>,
    device: Arc<Device>,
}

impl Window {
    /// A window that is not open.
    pub(super) fn new(device: &Arc<Device>) -> io::Result<Self> {
        let unsupported = || io::Error::from(io::ErrorKind::Unsupported);
        let alloc = device.ops().alloc_mw.ok_or_else(unsupported)?;
        // SAFETY: the domain is alive; null or a window that is ours to free.
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

    /// The key that it has when it is opened the next time: the low byte is ours to choose, and
    /// must be another than the last.
    pub(super) fn next_key(&self) -> u32 {
        // SAFETY: alive until `drop`; only the owner's thread changes it.
        let key = unsafe { self.raw.as_ref() }.rkey;
        (key & !0xff) | (key.wrapping_add(1) & 0xff)
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        let dealloc = self.device.ops().dealloc_mw;
        let dealloc = dealloc.expect("what makes windows frees them");
        // SAFETY: freed once. An open window is closed by this.
        let result = unsafe { dealloc(self.raw.as_ptr()) };
        assert_eq!(result, 0, "a window can be freed");
    }
}

/// What a device speaks.
///
/// # Safety
/// The device is open during the call.
pub(super) unsafe fn network(context: NonNull<ffi::Context>) -> Network {
    // SAFETY: an open context has a device.
    let device = unsafe { context.as_ref() }.device;
    // SAFETY: the device is listed as long as a context of it is open.
    match unsafe { (*device).transport_type } {
        ffi::TRANSPORT_IWARP => Network::Iwarp,
        _ => Network::InfiniBand,
    }
}

/// The name of a device, for messages.
pub(super) fn name(device: &Device) -> String {
    // SAFETY: an open context has a device.
    let raw = unsafe { device.context.as_ref() }.device;
    // SAFETY: the device is listed as long as a context of it is open.
    text(unsafe { &(*raw).name })
}

/// The name under which Linux lets programs open a device, `uverbs0` or the like.
///
/// # Safety
/// The device is open during the call.
pub(super) unsafe fn file_name(context: NonNull<ffi::Context>) -> String {
    // SAFETY: an open context has a device.
    let raw = unsafe { context.as_ref() }.device;
    // SAFETY: the device is listed as long as a context of it is open.
    text(unsafe { &(*raw).dev_name })
}

/// What stands in front of the zero.
fn text(name: &[c_char]) -> String {
    let bytes = name.iter().take_while(|byte| **byte != 0);
    // `c_char` has a sign on some machines.
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
    // SAFETY: the device is open, and the attributes have room for what is written.
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

/// What rxe and siw have in place of a vendor (Linux: `rxe_param.h`, `siw.h`).
const SOFTWARE: [u32; 2] = [0xff_ffff, 0x62_6d74];

fn count(value: c_int) -> u32 {
    u32::try_from(value).unwrap_or(0)
}

/// RDMA-CM has a byte for it, and a meaning of its own for 255.
fn depth(value: c_int) -> u8 {
    u8::try_from(value.clamp(0, 254)).expect("within a byte")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
