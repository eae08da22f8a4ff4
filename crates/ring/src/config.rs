//! What a runtime is told, what it chose, and what it counted.

use std::cell::Cell;

/// Which driver to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Io {
    /// io_uring when the kernel offers everything that is needed, epoll otherwise.
    #[default]
    Auto,
    /// io_uring, or fail.
    Uring,
    /// epoll and a pool of threads for files.
    Epoll,
}

/// How to set a runtime up.
#[derive(Clone, Debug)]
pub struct Config {
    /// Which driver to use.
    pub io: Io,
    /// Submission queue entries of the ring; the completion queue has four times as many.
    pub entries: u32,
    /// Limits of the memory that the runtime hands out.
    pub buffers: PoolConfig,
    /// Most threads that run blocking closures; they start when needed and leave when idle.
    pub blocking_threads: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            io: Io::Auto,
            // A turn rarely queues more; a full queue costs one more system call, no failure.
            entries: 512,
            buffers: PoolConfig::default(),
            blocking_threads: 4,
        }
    }
}

/// Limits of the memory that one runtime hands out.
#[derive(Clone, Debug)]
pub struct PoolConfig {
    /// Most bytes that all [`Buffer`](crate::Buffer)s of the pool may take together.
    pub total_bytes: usize,
    /// Whether the ring is told of the memory as soon as the pool takes it, for files that are read
    /// and written through the ring. All its pages are made then: 2 MiB and more at a time.
    pub registered: bool,
    /// How many receive chunks there are; a power of two, at most 32768.
    pub chunks: u16,
    /// Size of one receive chunk in bytes; a multiple of 4096.
    pub chunk_bytes: usize,
}

impl Default for PoolConfig {
    fn default() -> Self {
        Self {
            // Thirty requests of 8 MiB, or hundreds of 1 MiB, in flight on one worker.
            total_bytes: 256 << 20,
            registered: true,
            // 4 MiB: 256 connections may each have one unread chunk.
            chunks: 256,
            // Holds any request without bulk data; 64 requests of 120 bytes in one completion.
            chunk_bytes: 16 << 10,
        }
    }
}

/// The driver that a runtime uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    /// Completions from io_uring.
    Uring,
    /// Readiness from epoll, files on a pool of threads.
    Epoll,
}

/// Which driver was chosen, and why.
#[derive(Clone, Debug)]
pub struct IoReport {
    /// The driver in use.
    pub driver: Driver,
    /// One line for the log: set-up flags, or what was missing.
    pub reason: String,
}

/// Counters since the start of the runtime, for benchmarks and status pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Calls of `io_uring_enter` or `epoll_wait`.
    pub enters: u64,
    /// Submission queue entries pushed. Stays 0 with epoll.
    pub sqes: u64,
    /// Completion queue entries or epoll events handled.
    pub cqes: u64,
    /// Polls of tasks.
    pub polls: u64,
    /// Socket system calls made inline, without the ring.
    pub inline_calls: u64,
}

/// Changes the counters of a runtime.
pub(crate) fn count(stats: &Cell<Stats>, change: impl FnOnce(&mut Stats)) {
    let mut copy = stats.get();
    change(&mut copy);
    stats.set(copy);
}
