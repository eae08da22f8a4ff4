//! One descriptor for several: a queue pair reports events on two, and has the first one before the
//! second.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::channel::check;

/// Readable while one of its descriptors is readable.
pub(super) struct Readiness(OwnedFd);

impl Readiness {
    pub(super) fn new() -> io::Result<Self> {
        // SAFETY: creates a descriptor, and accesses nothing else.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new, so nothing else owns it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Adds a descriptor until it is closed.
    pub(super) fn watch(&self, descriptor: BorrowedFd<'_>) -> io::Result<()> {
        let mut event = libc::epoll_event {
            events: libc::EPOLLIN as u32,
            u64: 0,
        };
        let (epoll, fd) = (self.0.as_raw_fd(), descriptor.as_raw_fd());
        // SAFETY: both descriptors are open, and the event is readable during the call.
        check(unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, fd, &raw mut event) })
    }
}

impl AsFd for Readiness {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
