//! DescriptorReserve whose bytes go past the page cache.
//!
//! O_DIRECT belongs to what was opened and not to the descriptor: set on the one that is there, it
//! would hold for small and unaligned transfers too. So the file is opened a second time, when the
//! first large transfer comes. It is opened through the descriptor that is there and not by name:
//! it is the same file, whatever became of the name. The kernel asks the token's permissions anew;
//! where they have become less, bytes go through the page cache by the first descriptor, as its
//! rights have it.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::fs::{AtFlags, Mode, OFlags, StatxFlags, fcntl_getfl, fcntl_setfl, open, statx};
use rustix::io::Errno;

use super::Posix;
use super::file::OpenFile;
use super::stat::by_descriptor;
use crate::{Direct, IoDirection, identity};

/// Alignment of memory that every buffer of a pool has: a page.
const MEMORY_MAX: usize = 4 << 10;

/// Alignment in a file beyond which so few transfers have it that it is not worth the descriptor.
const OFFSET_MAX: usize = 64 << 10;

impl Posix {
    /// An open's second descriptor; the first call opens it.
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

    /// The kernel refused a transfer that was aligned as it said.
    pub(super) fn refuse(&self, file: &OpenFile) {
        file.direct_descriptor
            .is_refused
            .store(true, Ordering::Relaxed);
        self.warn_no_direct(file);
    }

    /// Says once for the share that there is no O_DIRECT.
    fn warn_no_direct(&self, file: &OpenFile) {
        if !self.has_warned_no_direct.swap(true, Ordering::Relaxed) {
            let path = file.link.location().path;
            tracing::warn!(%path, "no direct I/O on this file: it goes through the page cache");
        }
    }
}

/// Opens a file again; `None` where the kernel does not say how it is to be aligned.
fn open_direct(file: &OpenFile) -> Result<Option<Direct>, Errno> {
    let aligned = statx(&*file.fd, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN)?;
    let [memory_alignment, offset_alignment] =
        [aligned.stx_dio_mem_align, aligned.stx_dio_offset_align].map(|bytes| bytes as usize);
    // Both are 0 where the file system, this file of it or the kernel (before 6.1) has no such.
    let is_known = memory_alignment.is_power_of_two() && offset_alignment.is_power_of_two();
    if !is_known || memory_alignment > MEMORY_MAX || offset_alignment > OFFSET_MAX {
        return Ok(None);
    }
    identity::assume(&file.token).map_err(|_| Errno::ACCESS)?;
    let flags = (fcntl_getfl(&*file.fd)? & OFlags::RWMODE) | OFlags::DIRECT;
    // Somebody's lease is not waited for.
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
