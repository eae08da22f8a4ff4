//! What a file is: a folder of the local system, or memory.
//!
//! Both implement the file operations of [`proto::file`]; there is no mapping layer in between.
//! [`posix::Posix`] serves a folder, [`memory::Memory`] serves tests and the simulator. What can
//! be decided without a system call is decided once for both: who may do what in [`rights`], DOS
//! attributes in [`attributes`], names without regard to case in [`fold`].
//!
//! # Who must be what, when
//!
//! A process that runs as root does every operation of [`FileSystem::execute`] and
//! [`FileSystem::write`] under the Unix credentials of the open's token. They are set on the
//! calling thread and stay set (see [`identity`]): a worker calls [`identity::own`] before it
//! does something as the server itself.
#![forbid(unsafe_code)]

pub mod attributes;
pub mod copy;
mod direct_io_gate;
mod disposition;
pub mod dosattrib;
pub mod errno;
pub mod fold;
pub mod identity;
pub mod memory;
pub mod posix;
pub mod rights;
mod table;

pub use self::direct_io_gate::DirectWriteGuard;

use std::os::fd::OwnedFd;
use std::sync::Arc;

use proto::file::{FileOp, LocalEvent, LocalOpen, Outcome, Select};
use proto::token::Token;
use wire::Status;

/// How far an attempt may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Only as far as it need not wait for a disk: for a thread that serves others too.
    Cached,
    /// Until it is done: for a thread that may wait.
    Blocking,
}

/// What came of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Attempt<T> {
    /// It is done, well or not.
    Done(T),
    /// It would have had to wait, and nothing was done: again with [`Effort::Blocking`], on a
    /// thread that may wait.
    WouldBlock,
}

impl<T> Attempt<T> {
    /// What came of it; `None` where nothing was done.
    pub fn done(self) -> Option<T> {
        match self {
            Self::Done(value) => Some(value),
            Self::WouldBlock => None,
        }
    }
}

/// An open file for a driver that moves the bytes by itself, on its ring.
#[derive(Clone, Debug)]
pub struct Descriptor {
    /// The file. It stays open until the last clone goes, whatever becomes of the open.
    pub fd: Arc<OwnedFd>,
    /// Under whose credentials to write. Reads need none: the file was opened under them.
    pub token: Arc<Token>,
    /// Whether neither reads nor writes ever wait for a disk.
    pub never_blocks: bool,
}

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoDirection {
    /// From the file.
    Read,
    /// To the file.
    Write,
}

/// An open file whose bytes go between the disk and memory of the driver, past the page cache.
#[derive(Clone, Debug)]
pub struct Direct {
    /// The file, opened with O_DIRECT. It stays open until the last clone goes.
    pub fd: Arc<OwnedFd>,
    /// Under whose credentials to write. Reads need none.
    pub token: Arc<Token>,
    /// Leave to write so; writes into the page cache wait for as long as it is held.
    pub guard: Option<Arc<DirectWriteGuard>>,
    /// The address of memory must be a multiple of this. A power of two, a page at most.
    pub memory_alignment: usize,
    /// Offset and length must be multiples of so many bytes. A power of two, 64 KiB at most.
    pub offset_alignment: usize,
}

/// Who is told what others than the server did in directories that it watches. Called on a thread
/// of the file system's own, in order.
pub type Listener = Arc<dyn Fn(&[LocalEvent]) + Send + Sync>;

/// A share's files. Used from several threads at once.
pub trait FileSystem: Send + Sync {
    /// Does the operation now, or says that it would have to wait.
    fn execute(&self, op: &FileOp, effort: Effort) -> Attempt<Result<Outcome, Status>>;

    /// Reads at `offset` until `into` is full or the file ends; how many bytes that were.
    fn read(
        &self,
        file: LocalOpen,
        offset: u64,
        into: &mut [u8],
        effort: Effort,
    ) -> Attempt<Result<usize, Status>>;

    /// Writes all of `from` at `offset`, or at the end of the file; how many bytes that were.
    /// With `through` it is done when the bytes are on stable storage.
    fn write(
        &self,
        file: LocalOpen,
        offset: Option<u64>,
        from: &[u8],
        through: bool,
        effort: Effort,
    ) -> Attempt<Result<usize, Status>>;

    /// From now on tells this one of changes in directories that
    /// [`Operation::Watch`](proto::file::Operation::Watch) names. A file
    /// system that nobody else changes tells nothing.
    fn listen(&self, _listener: Listener) {}

    /// The file behind an open with the right to read or write data; `None` where there is none.
    fn descriptor(&self, file: LocalOpen) -> Option<Descriptor>;

    /// The file behind an open with the right to move bytes this way, to move them past the page
    /// cache; `None` where share, file or file system do not have it so, and for writes while
    /// others write through the page cache. Never waits for a disk.
    fn direct(&self, _file: LocalOpen, _direction: IoDirection) -> Option<Direct> {
        None
    }

    /// The kernel would not have it so after all: [`direct`](Self::direct) says `None` from now on
    /// for this open.
    fn refuse_direct(&self, _file: LocalOpen) {}

    /// Whether writes into the page cache may have to wait for those past it: then all of them go
    /// by [`write`](Self::write).
    fn gates_writes(&self) -> bool {
        false
    }
}

/// Whether a listing wants a name.
pub(crate) fn selects(select: &Select, name: &str) -> bool {
    match select {
        Select::All => true,
        Select::Matching(pattern) => pattern.matches(name),
        Select::Name(wanted) => fold::same(wanted, name),
    }
}

/// Why an operation went no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// It failed.
    Failed(Status),
    /// It would have to wait.
    WouldBlock,
}

impl From<Status> for Stop {
    fn from(status: Status) -> Self {
        Self::Failed(status)
    }
}

/// A step of an operation.
pub(crate) type Step<T> = Result<T, Stop>;

/// Converts the result of an operation or of a transfer into an attempt.
pub(crate) fn attempt<T>(step: Step<T>) -> Attempt<Result<T, Status>> {
    match step {
        Ok(value) => Attempt::Done(Ok(value)),
        Err(Stop::Failed(status)) => Attempt::Done(Err(status)),
        Err(Stop::WouldBlock) => Attempt::WouldBlock,
    }
}
