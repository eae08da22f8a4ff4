//! The flag of a device that is removed from the machine.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether a device was removed. Its descriptor is readable from then on.
pub(super) struct Removal {
    is_raised: AtomicBool,
    eventfd: OwnedFd,
}

impl Removal {
    pub(super) fn new() -> io::Result<Self> {
        // SAFETY: creates a descriptor, and accesses nothing else.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self {
            is_raised: AtomicBool::new(false),
            // SAFETY: the descriptor is new, so nothing else owns it.
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
        // SAFETY: the descriptor is open, and eight bytes are readable. The counter is written
        // once, so it does not overflow.
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

    fn is_readable(removal: &Removal) -> bool {
        let mut poll = libc::pollfd {
            fd: removal.as_fd().as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one descriptor, which is open; the call does not wait.
        unsafe { libc::poll(&raw mut poll, 1, 0) == 1 }
    }

    #[test]
    fn a_removed_device_stays_readable() {
        let removal = Removal::new().expect("a descriptor");
        assert!(!removal.is_raised() && !is_readable(&removal));
        for _ in 0..2 {
            removal.raise();
            assert!(removal.is_raised() && is_readable(&removal));
        }
    }
}
