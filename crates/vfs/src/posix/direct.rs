//! Descriptors for direct I/O.
//!
//! O_DIRECT is a property of the open file description: on the existing one it would also apply to
//! small and unaligned transfers. So the first large transfer opens the file a second time. It does
//! so through the existing descriptor instead of the name, so it is the same file even after a
//! rename. The kernel checks the token's permissions again. If they have been reduced, transfers go
//! through the page cache with the first descriptor, which keeps its rights.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::fs::{AtFlags, Mode, OFlags, StatxFlags, fcntl_getfl, fcntl_setfl, open, statx};
use rustix::io::Errno;

use super::Posix;
use super::file::OpenFile;
use super::stat::by_descriptor;
use crate::{Direct, IoDirection, identity};

/// Maximum alignment of memory in bytes: every buffer of a pool has the alignment of a page.
const MEMORY_MAX: usize = 4 << 10;

/// Maximum alignment of offsets in bytes: with a larger one, too few transfers are aligned to
/// justify a second descriptor.
const OFFSET_MAX: usize = 64 << 10;

impl Posix {
    /// The second descriptor of an open; the first call opens it.
    pub(super) fn past_cache(&self, file: &OpenFile, direction: IoDirection) -> Option<Direct> {
        let has_right = match direction {
            IoDirection::Read => file.reads(),
            IoDirection::Write => file.writes(),
        };
        let is_refused = file.direct_descriptor.is_refused.load(Ordering::Relaxed);
        if !file.is_data() || !has_right || is_refused {
            return None;
        }
        let opened = file
            .direct_descriptor
            .opened
            .get_or_init(|| match open_direct(file) {
                Ok(Some(direct)) => Some(direct),
                Ok(None) | Err(Errno::INVAL | Errno::OPNOTSUPP) => {
                    self.warn_no_direct(file);
                    None
                }
                Err(_) => None,
            });
        let guard = match direction {
            IoDirection::Read => None,
            IoDirection::Write => Some(Arc::new(file.write_gate.as_ref()?.direct()?)),
        };
        let opened = opened.clone()?;
        Some(Direct { guard, ..opened })
    }

    /// Disables direct I/O for an open after the kernel has refused an aligned transfer.
    pub(super) fn refuse(&self, file: &OpenFile) {
        file.direct_descriptor
            .is_refused
            .store(true, Ordering::Relaxed);
        self.warn_no_direct(file);
    }

    /// Logs once per share that a file does not support direct I/O.
    fn warn_no_direct(&self, file: &OpenFile) {
        if !self.has_warned_no_direct.swap(true, Ordering::Relaxed) {
            let path = file.link.location().path;
            tracing::warn!(%path, "file does not support direct I/O: using the page cache");
        }
    }
}

/// Opens a file again with O_DIRECT; `None` when the kernel reports no alignment.
fn open_direct(file: &OpenFile) -> Result<Option<Direct>, Errno> {
    let aligned = statx(&*file.fd, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN)?;
    let [memory_alignment, offset_alignment] =
        [aligned.stx_dio_mem_align, aligned.stx_dio_offset_align].map(|bytes| bytes as usize);
    // Both are 0 if the kernel (before 6.1), the file system or this file does not support it.
    let is_known = memory_alignment.is_power_of_two() && offset_alignment.is_power_of_two();
    if !is_known || memory_alignment > MEMORY_MAX || offset_alignment > OFFSET_MAX {
        return Ok(None);
    }
    identity::assume(&file.token).map_err(|_| Errno::ACCESS)?;
    let flags = (fcntl_getfl(&*file.fd)? & OFlags::RWMODE) | OFlags::DIRECT;
    // Do not wait for the break of a file lease.
    let once = OFlags::NONBLOCK | OFlags::CLOEXEC;
    let fd: OwnedFd = open(by_descriptor(&file.fd), flags | once, Mode::empty())?;
    fcntl_setfl(&fd, flags)?;
    Ok(Some(Direct {
        fd: Arc::new(fd),
        token: file.token.clone(),
        guard: None,
        memory_alignment,
        offset_alignment,
    }))
}
