//! Detects removed devices.
//!
//! RDMA-CM reports the removal of a device to its users if the driver can disconnect from programs
//! (`disassociate_ucontext`). With other drivers, for example siw, Linux removes the device file,
//! reports nothing, and waits until all programs have closed the device. So this thread checks
//! whether the files of the devices in use still exist.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use super::device::{Devices, file_name};
use super::ffi;
use super::library::Library;

/// The directory with the names of the device files.
const NAMES: &str = "/sys/class/infiniband_verbs";
/// Time between two checks.
const PERIOD: Duration = Duration::from_secs(1);

/// Starts the thread, which ends when all owners of `devices` have dropped them.
pub(super) fn start(devices: &Arc<Devices>) -> io::Result<()> {
    let devices = Arc::downgrade(devices);
    let thread = thread::Builder::new().name("rdma-watch".into());
    thread.spawn(move || watch(&devices)).map(drop)
}

fn watch(devices: &Weak<Devices>) {
    let mut before = HashSet::new();
    let mut held = None;
    loop {
        let Some(devices) = devices.upgrade() else {
            return;
        };
        // Without the directory nothing is known about the devices.
        if let Some(now) = names() {
            if !now.is_subset(&before) {
                held = Held::new(devices.library());
                devices.forget_closed();
            }
            if let Some(held) = &mut held {
                held.close_removed(&now, &devices);
            }
            before = now;
        }
        drop(devices);
        thread::sleep(PERIOD);
    }
}

fn names() -> Option<HashSet<String>> {
    let entries = fs::read_dir(NAMES).ok()?;
    let names = entries.map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()));
    names.collect()
}

/// The devices of this machine. RDMA-CM's library has all of them open from the first use to the
/// end of the program, or until it finds another device in their position.
struct Held {
    library: &'static Library,
    list: NonNull<*mut ffi::Context>,
    /// The contexts of the list that are not closed.
    open: Vec<NonNull<ffi::Context>>,
}

impl Held {
    /// `None` if the machine has no device.
    fn new(library: &'static Library) -> Option<Self> {
        let mut count = 0;
        let list = library.calls.run(|| {
            // SAFETY: the count is writable; returns null or a list that the caller returns.
            NonNull::new(unsafe { (library.get_devices)(&raw mut count) })
        })?;
        let count = usize::try_from(count).unwrap_or(0);
        // SAFETY: the list has `count` devices, and lives until it is returned.
        let contexts = unsafe { std::slice::from_raw_parts(list.as_ptr(), count) };
        Some(Self {
            library,
            list,
            open: contexts.iter().copied().filter_map(NonNull::new).collect(),
        })
    }

    /// Closes all devices without a name in `names`, each as soon as it has no users.
    fn close_removed(&mut self, names: &HashSet<String>, devices: &Devices) {
        self.open.retain(|context| {
            // SAFETY: the list keeps the device open.
            let exists = names.contains(&unsafe { file_name(*context) });
            if exists {
                return true;
            }
            // SAFETY: the list keeps the context, and the device has no users.
            let closed = devices.close_removed(*context, || unsafe { close_files(*context) });
            if let Some(Err(error)) = &closed {
                tracing::warn!(%error, "cannot close a removed device");
            }
            closed.is_none()
        });
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let library = self.library;
        // SAFETY: returned once, and not used after this.
        let free = || unsafe { (library.free_devices)(self.list.as_ptr()) };
        library.calls.run(free);
    }
}

/// Closes the files of a device, and leaves its memory to the owner, RDMA-CM's library: while the
/// machine has no other device, the library never closes the last one. The descriptors stay open
/// but refer to /dev/null, so the library later closes exactly them again.
///
/// # Safety
/// The context exists, and the device has no users.
unsafe fn close_files(context: NonNull<ffi::Context>) -> io::Result<()> {
    let nothing = fs::File::open("/dev/null")?;
    // SAFETY: the caller guarantees that the context exists.
    let context = unsafe { context.as_ref() };
    for fd in [context.async_fd, context.cmd_fd] {
        // SAFETY: both descriptors are open; the library that owns the second one does not depend
        // on its target once the device has no users.
        if unsafe { libc::dup3(nothing.as_raw_fd(), fd, libc::O_CLOEXEC) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}
