//! A reserve of file descriptors that opens may not use. A process without free descriptors cannot
//! accept connections, and cannot even find the cause.

use std::os::fd::{AsFd, AsRawFd, RawFd};

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

/// Number of reserved descriptors, for connections and for temporary use by operations; at most a
/// quarter of all.
const RESERVE: u64 = 4096;

/// The limit on the descriptors of opens.
#[derive(Clone, Copy, Debug)]
pub(super) struct DescriptorReserve {
    /// The highest number that an open may use. The kernel always assigns the lowest free number.
    last: RawFd,
}

impl DescriptorReserve {
    /// The limit that follows from the present RLIMIT_NOFILE.
    pub(super) fn new() -> Self {
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let last = limit - RESERVE.min(limit / 4);
        Self {
            last: RawFd::try_from(last).unwrap_or(RawFd::MAX),
        }
    }

    /// Fails if the descriptor is part of the reserve.
    pub(super) fn check(self, fd: &impl AsFd) -> Result<(), Errno> {
        match fd.as_fd().as_raw_fd() <= self.last {
            true => Ok(()),
            false => Err(Errno::MFILE),
        }
    }
}
