//! The flag of a device that is removed from the machine.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether a device has gone, and a descriptor that is readable from then on.
pub(super) struct Removal {
    is_raised: AtomicBool,
    eventfd: OwnedFd,
}

impl Removal {
    pub(super) fn new() -> io::Result<Self> {
        // SAFETY: makes a descriptor, and touches nothing else.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self {
            is_raised: AtomicBool::new(false),
            // SAFETY: fresh, and nobody else's.
            eventfd: unsafe { OwnedFd::from_raw_fd(fd) },
        })
    }

    pub(super) fn is_raised(&self) -> bool {
        self.is_raised.load(Ordering::Acquire)
    }

    pub(super) fn raise(&self) {
        if self.is_raised.swap(true, Ordering::AcqRel) {
            return;
        }
        let one = 1_u64.to_ne_bytes();
        // SAFETY: the descriptor is open, and eight bytes are readable. Raised once, it has room.
        unsafe { libc::write(self.eventfd.as_raw_fd(), one.as_ptr().cast(), one.len()) };
    }
}

impl AsFd for Removal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.eventfd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_readable(gone: &Removal) -> bool {
        let mut poll = libc::pollfd {
            fd: gone.as_fd().as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one descriptor, which is open, and no waiting.
        unsafe { libc::poll(&raw mut poll, 1, 0) == 1 }
    }

    #[test]
    fn what_has_gone_stays_readable() {
        let gone = Removal::new().expect("a descriptor");
        assert!(!gone.is_raised() && !is_readable(&gone));
        for _ in 0..2 {
            gone.raise();
            assert!(gone.is_raised() && is_readable(&gone));
        }
    }
}
