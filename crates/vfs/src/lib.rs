//! File systems of shares: a directory of the local system, or memory.
//!
//! Both implement the file operations of [`proto::file`] without a mapping layer. [`posix::Posix`]
//! serves a directory; [`memory::Memory`] serves tests and the simulator. Decisions that require no
//! system call are in modules that both use: access rights in [`rights`], DOS attributes in
//! [`attributes`], comparison of names in [`fold`].
//!
//! # Credentials
//!
//! A process that runs as root does every operation of [`FileSystem::execute`] and
//! [`FileSystem::write`] under the Unix credentials of the open's token. They are set on the
//! calling thread and stay set (see [`identity`]): a worker calls [`identity::own`] before it acts
//! as the server itself.
#![forbid(unsafe_code)]

pub mod accounts;
pub mod attributes;
mod computed;
pub mod copy;
mod denial;
mod direct_io_gate;
mod disposition;
pub mod dosattrib;
mod ea;
pub mod errno;
pub mod fold;
pub mod identity;
pub mod memory;
mod ndr;
pub mod posix;
pub mod rights;
mod security;
mod table;

pub use self::computed::computed_permissions;
pub use self::denial::{Denial, DescriptorDenial, Permission};
pub use self::direct_io_gate::DirectWriteGuard;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use proto::file::{FileOp, LocalEvent, LocalOpen, Outcome, Select};
use proto::path::SharePath;
use proto::report::NeededAccess;
use proto::token::Token;
use wire::Status;

/// Whether a file operation may block the thread that runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Use caches only: return [`Attempt::WouldBlock`] instead of a wait for a disk. A thread that
    /// serves several connections uses this.
    Cached,
    /// Block until the operation is complete. A thread that may block uses this.
    Blocking,
}

/// The result of a file operation that was asked not to block: done, or not possible without
/// blocking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Attempt<T> {
    /// The operation is complete; `T` says whether it succeeded.
    Done(T),
    /// The operation would have to wait, and had no effect. The caller repeats it with
    /// [`Effort::Blocking`] on a thread that may block.
    WouldBlock,
}

impl<T> Attempt<T> {
    /// Returns the result of a complete operation; `None` for [`Attempt::WouldBlock`].
    pub fn done(self) -> Option<T> {
        match self {
            Self::Done(value) => Some(value),
            Self::WouldBlock => None,
        }
    }
}

/// An open file as a file descriptor, for a server thread that reads and writes the bytes itself,
/// with its own `io_uring` instance.
#[derive(Clone, Debug)]
pub struct Descriptor {
    /// The file. It stays open until the last clone is dropped, also after the client has closed
    /// the file.
    pub fd: Arc<OwnedFd>,
    /// Unix credentials with which writes must run. Reads need none, because the file was opened
    /// with these credentials.
    pub token: Arc<Token>,
    /// Whether reads and writes of this file never wait for a disk.
    pub never_blocks: bool,
}

/// Direction of a transfer between a file and memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoDirection {
    /// From the file to memory.
    Read,
    /// From memory to the file.
    Write,
}

/// An open file for direct I/O: reads and writes between the disk and memory that bypass the page
/// cache.
#[derive(Clone, Debug)]
pub struct Direct {
    /// The file, opened with O_DIRECT. It stays open until the last clone is dropped.
    pub fd: Arc<OwnedFd>,
    /// Unix credentials with which writes must run. Reads need none.
    pub token: Arc<Token>,
    /// Permission for a direct write; `None` for a read. Writes to the file through the page cache
    /// wait until the permission is dropped.
    pub guard: Option<Arc<DirectWriteGuard>>,
    /// Required alignment of memory addresses in bytes: a power of two, at most the size of a page.
    pub memory_alignment: usize,
    /// Required alignment of the offset in the file and of the length in bytes: a power of two, at
    /// most 64 KiB.
    pub offset_alignment: usize,
}

/// A callback that receives changes in watched directories by processes other than the server. A
/// thread of the file system calls it, in the order of the changes.
pub type Listener = Arc<dyn Fn(&[LocalEvent]) + Send + Sync>;

/// The operations on the files of a share. A directory of the local system implements it, and a
/// share in memory for tests. Several threads call the methods at the same time.
pub trait FileSystem: Send + Sync {
    /// Runs the file operation `op` and returns its outcome. `effort` says whether the call may
    /// block: with [`Effort::Cached`] the attempt may end with [`Attempt::WouldBlock`], without an
    /// effect. The error is the status that the client receives.
    fn execute(&self, op: &FileOp, effort: Effort) -> Attempt<Result<Outcome, Status>>;

    /// Reads bytes at `offset`, in bytes, until `into` is full or the file ends. With
    /// [`Effort::Cached`] a read that must wait for a disk is [`Attempt::WouldBlock`]; `into` may
    /// hold any bytes then. Returns the number of bytes read, or the status for the client.
    fn read(
        &self,
        file: LocalOpen,
        offset: u64,
        into: &mut [u8],
        effort: Effort,
    ) -> Attempt<Result<usize, Status>>;

    /// Writes all of `from` at `offset`, in bytes, or at the end of the file if it is `None`.
    /// Returns the number of bytes written, or the status for the client. With `through`, the data
    /// are on stable storage when the write completes. With [`Effort::Cached`] a write that must
    /// wait is [`Attempt::WouldBlock`] and has written nothing.
    fn write(
        &self,
        file: LocalOpen,
        offset: Option<u64>,
        from: &[u8],
        through: bool,
        effort: Effort,
    ) -> Attempt<Result<usize, Status>>;

    /// Finds the Unix permissions that refuse one of these accesses to the user of a token, for the
    /// log. Blocks. `None` if the file system has no Unix permissions, or if the files have changed
    /// since the refusal.
    fn find_denial(
        &self,
        _token: &Arc<Token>,
        _needs: &[(SharePath, NeededAccess)],
    ) -> Option<Denial> {
        None
    }

    /// Checks that the root directory of the share can be opened with the credentials of the
    /// server. Blocks. The default is for file systems that have it always.
    ///
    /// # Errors
    /// The reason why clients cannot use the share now.
    fn check_root(&self) -> io::Result<()> {
        Ok(())
    }

    /// Sets the callback for changes in directories that
    /// [`Operation::Watch`](proto::file::Operation::Watch) names. The default drops the callback. A
    /// file system without other users never calls it.
    fn listen(&self, _listener: Listener) {}

    /// Returns the descriptor of an open that has the right to read or write data. `None` for other
    /// opens, and for a file system without descriptors: the driver then calls [`read`](Self::read)
    /// and [`write`](Self::write).
    fn descriptor(&self, file: LocalOpen) -> Option<Descriptor>;

    /// Returns the descriptor of an open for one direct transfer in this direction. `None` when the
    /// share, the file or the file system does not support direct I/O, when the open lacks the
    /// right, and for a write while a write into the page cache is in progress. Never waits for a
    /// disk.
    fn direct(&self, _file: LocalOpen, _direction: IoDirection) -> Option<Direct> {
        None
    }

    /// Disables direct I/O for this open after the kernel has refused a transfer:
    /// [`direct`](Self::direct) then returns `None`.
    fn refuse_direct(&self, _file: LocalOpen) {}

    /// Returns whether a write into the page cache may have to wait for a direct write to the same
    /// file. The driver then uses [`write`](Self::write) for all writes instead of the descriptor.
    fn gates_writes(&self) -> bool {
        false
    }
}

/// Whether the selection of a listing includes a name.
pub(crate) fn selects(select: &Select, name: &str) -> bool {
    match select {
        Select::All => true,
        Select::Matching(pattern) => pattern.matches(name),
        Select::Name(wanted) => fold::same(wanted, name),
    }
}

/// Why an operation stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The operation failed.
    Failed(Status),
    /// The operation would have to wait.
    WouldBlock,
}

impl From<Status> for Stop {
    fn from(status: Status) -> Self {
        Self::Failed(status)
    }
}

/// The result of a step of an operation.
pub(crate) type Step<T> = Result<T, Stop>;

/// Converts the result of an operation or a transfer into an attempt.
pub(crate) fn attempt<T>(step: Step<T>) -> Attempt<Result<T, Status>> {
    match step {
        Ok(value) => Attempt::Done(Ok(value)),
        Err(Stop::Failed(status)) => Attempt::Done(Err(status)),
        Err(Stop::WouldBlock) => Attempt::WouldBlock,
    }
}
