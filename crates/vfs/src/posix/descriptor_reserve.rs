//! DescriptorReserve that opens leave to others: a server that has none left accepts nobody, and cannot
//! even look who took them.

use std::os::fd::{AsFd, AsRawFd, RawFd};

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

/// DescriptorReserve that opens leave: connections, and what one operation opens on its way. A quarter of
/// those that there are where these are few.
const RESERVE: u64 = 4096;

/// Which descriptors opens may have.
#[derive(Clone, Copy, Debug)]
pub(super) struct DescriptorReserve {
    /// The kernel gives the lowest number that is free: who gets this one has got the last.
    last: RawFd,
}

impl DescriptorReserve {
    /// As the limit of the process is now.
    pub(super) fn new() -> Self {
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let last = limit - RESERVE.min(limit / 4);
        Self {
            last: RawFd::try_from(last).unwrap_or(RawFd::MAX),
        }
    }

    /// Whether an open may keep a descriptor.
    pub(super) fn check(self, fd: &impl AsFd) -> Result<(), Errno> {
        match fd.as_fd().as_raw_fd() <= self.last {
            true => Ok(()),
            false => Err(Errno::MFILE),
        }
    }
}
