//! Configuration, driver report and counters of a runtime.

use std::cell::Cell;

/// Selection of the kernel interface that a runtime uses for I/O.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Io {
    /// io_uring when the kernel supports all required features, epoll otherwise.
    #[default]
    Auto,
    /// io_uring only. Without it, the runtime does not start.
    Uring,
    /// epoll for sockets, and a pool of threads for files.
    Epoll,
}

/// Configuration of a [`Runtime`](crate::Runtime): kernel interface, size of the io_uring queues,
/// memory limits and number of threads.
#[derive(Clone, Debug)]
pub struct Config {
    /// Selection of the kernel interface for I/O: io_uring or epoll. Default: io_uring if it is
    /// available.
    pub io: Io,
    /// Number of submission queue entries of the io_uring instance. The completion queue has four
    /// times this number. Default: 512. Not used with epoll.
    pub entries: u32,
    /// Limits of the memory that the runtime lends to callers.
    pub buffers: PoolConfig,
    /// Maximum number of threads that run closures of
    /// [`Handle::blocking`](crate::Handle::blocking). The threads start on demand and end when
    /// idle. Default: 4.
    pub blocking_threads: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            io: Io::Auto,
            // A turn rarely queues more. A full queue costs one more system call and is no error.
            entries: 512,
            buffers: PoolConfig::default(),
            blocking_threads: 4,
        }
    }
}

/// Limits of the buffers and chunks that one runtime lends to callers.
#[derive(Clone, Debug)]
pub struct PoolConfig {
    /// Maximum total length in bytes of all [`Buffer`](crate::Buffer)s of the pool.
    pub total_bytes: usize,
    /// Whether the pool registers its buffers with io_uring, which makes reads and writes of files
    /// faster. Registration allocates and pins memory in blocks of 2 MiB or more. Default: yes.
    pub registered: bool,
    /// Number of receive chunks, which hold received bytes until the caller drops them. A power of
    /// two, at most 32,768. Default: 256.
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
            // A chunk holds any request without bulk data, or 64 requests of 120 bytes in one
            // completion.
            chunk_bytes: 16 << 10,
        }
    }
}

/// The kernel interface that a runtime uses for I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    /// io_uring: the kernel reports completed operations.
    Uring,
    /// epoll: the kernel reports ready sockets, and a pool of threads reads and writes files.
    Epoll,
}

/// The kernel interface that a runtime uses for I/O (io_uring or epoll), and the reason for its
/// use.
#[derive(Clone, Debug)]
pub struct IoReport {
    /// The kernel interface that the runtime uses.
    pub driver: Driver,
    /// One line for the log: the set-up flags of io_uring, or the reason why the runtime does not
    /// use io_uring.
    pub reason: String,
}

/// Counters of a runtime, each since its start, for benchmarks and status output. They never
/// decrease.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Number of calls of `io_uring_enter` or `epoll_wait`.
    pub enters: u64,
    /// Number of submission queue entries that the runtime passed to the kernel. Always 0 with
    /// epoll.
    pub sqes: u64,
    /// Number of completion queue entries or epoll events that the runtime handled.
    pub cqes: u64,
    /// Number of polls of tasks by the executor.
    pub polls: u64,
    /// Number of system calls on sockets that bypassed the ring.
    pub inline_calls: u64,
}

/// Updates the counters of a runtime.
pub(crate) fn count(stats: &Cell<Stats>, change: impl FnOnce(&mut Stats)) {
    let mut copy = stats.get();
    change(&mut copy);
    stats.set(copy);
}
