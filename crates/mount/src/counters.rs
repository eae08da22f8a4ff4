//! Counters of a mount, for `smbeam mount --status`.

use std::sync::atomic::{AtomicU64, Ordering};

/// A number that grows.
#[derive(Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn now(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What the mount has done.
#[derive(Default)]
pub(crate) struct Counters {
    /// Requests of the kernel.
    pub(crate) requests: Counter,
    /// Bytes that the kernel has read.
    pub(crate) read: Counter,
    /// Bytes that the kernel has written.
    pub(crate) written: Counter,
    /// Leases that the server has broken.
    pub(crate) breaks: Counter,
    /// Times that the kernel had to drop the pages of a file.
    pub(crate) invalidations: Counter,
    /// Writes of held data, each of adjacent writes of programs.
    pub(crate) sent: Counter,
}

/// The counters and the state of a mount at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MountStatistics {
    /// Requests of the kernel.
    pub requests: u64,
    /// Bytes that the kernel has read.
    pub read: u64,
    /// Bytes that the kernel has written.
    pub written: u64,
    /// Leases that the server has broken.
    pub breaks: u64,
    /// Times that the kernel had to drop the pages of a file.
    pub invalidations: u64,
    /// Inodes that the kernel knows.
    pub inodes: u64,
    /// Open files.
    pub open_files: u64,
    /// Files that stay open after their last close.
    pub kept_files: u64,
    /// Written bytes that the server does not have yet.
    pub held: u64,
    /// Writes of held data, each of adjacent writes of programs.
    pub sent: u64,
}
