//! The division of a file into requests, if no option sets it.
//!
//! Over one TCP connection a few large requests cost both ends less than many small ones with as
//! many bytes. Measured against Samba on one machine (bench/compare/LOG.md): an upload with 4
//! requests of 4 MiB takes eight tenths of the time of 16 requests of 1 MiB, an encrypted download
//! nine tenths.

use proto::client::BYTES_PER_CREDIT;

use crate::file::File;
use crate::io::dispatch::{DEPTH, Links};
use crate::transfer::options::TransferOptions;

/// Requests that suit TCP connections.
///
/// The first request is as large as possible. Samba allocates memory for each request with malloc.
/// The malloc of glibc returns freed memory to the kernel beyond twice the largest block that it
/// has seen. With requests of one size that limit is below the bytes in flight, and the kernel maps
/// new pages for each request. So the bytes in flight behind the first request are at most about
/// twice its length.
#[derive(Debug)]
pub(crate) struct Profile {
    /// Length of a request over one connection in bytes.
    largest: u64,
    /// Bytes in flight.
    window: u64,
    /// Length of a request in bytes if the server is on this machine and executes requests in turn.
    in_turn: Option<u64>,
}

/// Count of requests that execute in turn: one by each of two opens, and one behind each.
const IN_TURN: u64 = 4;

/// The length of a large request in bytes is a multiple of this.
const GRAIN: u64 = 512 << 10;

/// Profile of WRITEs. Threads that write to one file wait for each other, and on a local file
/// system of Linux they spin. A server on this machine would take the processors from the client
/// that way. So two requests execute at a time there, while the next ones are read and wait.
pub(crate) const WRITES: Profile = Profile {
    largest: 4 << 20,
    window: 16 << 20,
    in_turn: Some(3 * GRAIN),
};

/// Profile of READs.
pub(crate) const READS: Profile = Profile {
    largest: 2 << 20,
    window: 12 << 20,
    in_turn: None,
};

/// The requests of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Length of a request in bytes.
    pub(crate) size: usize,
    /// Length of the first one in bytes.
    pub(crate) first: usize,
    /// Count of requests in flight.
    pub(crate) depth: usize,
    /// Whether half of them wait behind the other half.
    pub(crate) in_turn: bool,
}

/// Limits of the server and the options for reading or writing a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Length in bytes of a request outside of transfers.
    pub(crate) usual: usize,
    /// Largest length of a request in bytes.
    pub(crate) most: usize,
    /// Count of bytes to transfer.
    pub(crate) total: u64,
}

impl Limits {
    pub(crate) fn of_reading(file: &File, total: u64) -> Self {
        let (usual, most) = (file.read_size(), file.most_read());
        Self { usual, most, total }
    }

    pub(crate) fn of_writing(file: &File, total: u64) -> Self {
        let (usual, most) = (file.write_size(), file.most_write());
        Self { usual, most, total }
    }

    /// The limits that satisfy both.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            usual: self.usual.min(other.usual),
            most: self.most.min(other.most),
            total: self.total.min(other.total),
        }
    }
}

impl Plan {
    /// The plan of the options, else one that suits the connections. A copy through this machine
    /// has two files, and its requests suit both.
    pub(crate) fn of<const N: usize>(
        options: &TransferOptions,
        files: [&File; N],
        (limits, profile): (Limits, &Profile),
    ) -> Self {
        let links = files.map(|file| file.share().links()).into_iter();
        let links = links.reduce(|one, other| Some(one?.and(other?))).flatten();
        match (options.io_size, options.depth, links) {
            (0, 0, Some(links)) => Self::over(links, limits, profile),
            (size, depth, _) => {
                let size = match size {
                    0 => limits.usual,
                    size => size.min(limits.most),
                };
                let depth = match depth {
                    0 => files[0].depth(),
                    depth => depth,
                };
                Self::uniform(size, depth)
            }
        }
    }

    /// Requests of one size.
    pub(crate) fn uniform(size: usize, depth: usize) -> Self {
        let size = size.max(1);
        let first = size;
        let in_turn = false;
        Self {
            size,
            first,
            depth,
            in_turn,
        }
    }

    /// The plan that suits TCP connections.
    fn over(links: Links, limits: Limits, profile: &Profile) -> Self {
        let in_turn = profile
            .in_turn
            .filter(|_| links.are_local && links.count == 1);
        let (largest, all) = match in_turn {
            Some(largest) => (largest, largest * IN_TURN),
            None => (profile.largest, profile.window),
        };
        let requests = all / largest;
        // A file that is shorter than the window still takes several requests.
        let window = all.min(limits.total / 4);
        // Each connection has its own credits, which responses return.
        let credits = u64::from(links.credits) * u64::from(BYTES_PER_CREDIT);
        let size = (window / links.count as u64).min(credits) / requests;
        let size = usize::try_from(size / GRAIN * GRAIN).unwrap_or(usize::MAX);
        let size = size.min(limits.most);
        if size <= limits.usual {
            return Self::uniform(limits.usual, DEPTH);
        }
        // The first request does not need more credits than the connection has.
        let first = usize::try_from(credits).map_or(limits.most, |most| most.min(limits.most));
        Self {
            size,
            first,
            depth: all as usize / size,
            in_turn: in_turn.is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    const LIMITS: Limits = Limits {
        usual: MIB,
        most: 8 * MIB,
        total: 1 << 40,
    };

    fn plan(profile: &Profile, count: usize, credits: u32, total: usize) -> (usize, usize) {
        let total = total as u64;
        let links = Links {
            count,
            credits,
            are_local: false,
        };
        let plan = Plan::over(links, Limits { total, ..LIMITS }, profile);
        assert!(!plan.in_turn);
        (plan.size / MIB, plan.depth)
    }

    #[test]
    fn a_window_is_shared_by_connections() {
        let over = |profile, count| plan(profile, count, 8192, 1 << 40);
        assert_eq!(over(&WRITES, 1), (4, 4));
        assert_eq!(over(&WRITES, 2), (2, 8));
        assert_eq!(over(&WRITES, 3), (1, 16));
        assert_eq!(over(&WRITES, 32), (1, 16));
        assert_eq!(over(&READS, 1), (2, 6));
        assert_eq!(over(&READS, 2), (1, 16));
    }

    #[test]
    fn files_and_credits_that_are_few_have_small_requests() {
        assert_eq!(plan(&WRITES, 1, 8192, 2 * MIB), (1, 16));
        assert_eq!(plan(&WRITES, 1, 8192, 32 * MIB), (2, 8));
        assert_eq!(plan(&WRITES, 1, 8192, 64 * MIB), (4, 4));
        assert_eq!(plan(&WRITES, 1, 31, 64 * MIB), (1, 16));
        assert_eq!(plan(&WRITES, 1, 128, 64 * MIB), (2, 8));
        assert_eq!(plan(&READS, 1, 8192, 32 * MIB), (1, 16));
        assert_eq!(plan(&READS, 1, 128, 64 * MIB), (1, 16));
    }

    #[test]
    fn what_a_server_on_this_machine_writes_goes_in_turn() {
        let plan = |profile, count, credits, total| {
            let links = Links {
                count,
                credits,
                are_local: true,
            };
            let limits = Limits { total, ..LIMITS };
            let plan = Plan::over(links, limits, profile);
            (plan.size as u64 / GRAIN, plan.depth, plan.in_turn)
        };
        assert_eq!(plan(&WRITES, 1, 8192, 1 << 40), (3, 4, true));
        assert_eq!(plan(&WRITES, 1, 96, 1 << 40), (3, 4, true));
        assert_eq!(plan(&WRITES, 1, 95, 1 << 40), (2, 16, false));
        assert_eq!(plan(&WRITES, 1, 8192, 23 << 20), (2, 16, false));
        assert_eq!(plan(&WRITES, 2, 8192, 1 << 40), (4, 8, false));
        assert_eq!(plan(&READS, 1, 8192, 1 << 40), (4, 6, false));
    }

    #[test]
    fn only_the_first_of_large_requests_is_larger() {
        let links = Links {
            count: 1,
            credits: 512,
            are_local: false,
        };
        let plan = |limits| Plan::over(links, limits, &READS);
        assert_eq!(plan(LIMITS).first, 8 * MIB);
        let few = Links {
            credits: 127,
            ..links
        };
        let few = Plan::over(few, LIMITS, &WRITES);
        assert_eq!((few.size, few.first), (3 * MIB / 2, 127 << 16));
        let small = Limits { total: 0, ..LIMITS };
        assert_eq!(plan(small), Plan::uniform(MIB, DEPTH));
        let strict = Limits {
            usual: 65_536,
            most: 65_536,
            ..LIMITS
        };
        assert_eq!(plan(strict), Plan::uniform(65_536, DEPTH));
    }
}
