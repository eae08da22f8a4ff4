//! Sees devices go.
//!
//! RDMA-CM tells the users of a device that it is taken away, if its driver can part from programs
//! (`disassociate_ucontext`). With others, siw's for one, Linux takes away the name under which
//! programs open the device, tells none of them, and waits until all have closed it. So this looks
//! whether the names of devices in use are there.

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

/// Where Linux has the names under which programs open devices.
const NAMES: &str = "/sys/class/infiniband_verbs";
/// How often they are looked at.
const PERIOD: Duration = Duration::from_secs(1);

/// Starts to look, for as long as there is somebody who has the devices.
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
        // Without the names nothing is known.
        if let Some(now) = names() {
            if !now.is_subset(&before) {
                held = Held::new(devices.library());
                devices.forget_closed();
            }
            if let Some(held) = &mut held {
                held.part_from_others(&now, &devices);
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

/// The devices that are there. RDMA-CM's library has them all open from the first use to the end of
/// the program, or until it sees another in their place.
struct Held {
    library: &'static Library,
    list: NonNull<*mut ffi::Context>,
    /// Those of the list that are not closed.
    open: Vec<NonNull<ffi::Context>>,
}

impl Held {
    /// `None` where there is no device.
    fn new(library: &'static Library) -> Option<Self> {
        let mut count = 0;
        let list = library.errands.run(|| {
            // SAFETY: the count is writable; null or a list that is ours to return.
            NonNull::new(unsafe { (library.get_devices)(&raw mut count) })
        })?;
        let count = usize::try_from(count).unwrap_or(0);
        // SAFETY: the list has so many devices, and lives until it is returned.
        let contexts = unsafe { std::slice::from_raw_parts(list.as_ptr(), count) };
        Some(Self {
            library,
            list,
            open: contexts.iter().copied().filter_map(NonNull::new).collect(),
        })
    }

    /// Closes all devices that have another name than these, each when nobody uses it any more.
    fn part_from_others(&mut self, names: &HashSet<String>, devices: &Devices) {
        self.open.retain(|context| {
            // SAFETY: the list keeps the device open.
            let is_there = names.contains(&unsafe { file_name(*context) });
            if is_there {
                return true;
            }
            // SAFETY: the list keeps the context, and nobody uses the device.
            let closed = devices.part(*context, || unsafe { close_files(*context) });
            if let Some(Err(error)) = &closed {
                tracing::warn!(%error, "a device that is taken away stays open");
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
        library.errands.run(free);
    }
}

/// Closes the files of a device, and leaves what is in memory to its owner, which is RDMA-CM's
/// library: where there is no other device that never closes the last one. Its descriptors lead to
/// where nothing is, so that it closes them once more, and them alone, when it does.
///
/// # Safety
/// The context is there, and nobody uses the device.
unsafe fn close_files(context: NonNull<ffi::Context>) -> io::Result<()> {
    let nothing = fs::File::open("/dev/null")?;
    // SAFETY: the caller's promise.
    let context = unsafe { context.as_ref() };
    for fd in [context.async_fd, context.cmd_fd] {
        // SAFETY: both descriptors are open; the library that owns the second does not depend on
        // what it leads to once nobody uses the device.
        if unsafe { libc::dup3(nothing.as_raw_fd(), fd, libc::O_CLOEXEC) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}
