//! A folder of the local file system.
//!
//! `walk` resolves paths beneath the root, `index` finds names without regard to case, `open` opens
//! and makes files; the rest is what can be done with an open.
//!
//! # What runs inline
//!
//! With [`Effort::Cached`] paths are resolved from the kernel's cache alone (RESOLVE_CACHED), and
//! a directory that is not in the index is not scanned. What then remains runs inline, as system
//! calls on cached dentries and inodes are cheaper than handing the work to a thread: open, fstat
//! and close take 1.4 us, to wake a thread on another core takes 15 us. That is making, removing,
//! renaming and linking names, stat, attributes and times, and cutting a little. These may still
//! wait for the journal of the file system, as in any server that does them inline.
//!
//! What reads or writes the disk by its nature would block: flushing, reserving, copying, making
//! bytes zero, asking which of them take space, listing a directory, cutting more than [`CUT_MAX`]
//! bytes, closing a file that has no name any more, writing more than [`WRITE_MAX`] bytes or
//! through to the disk, and reads that are not in the page cache. A file system in memory never
//! blocks, and does everything inline.
//!
//! # Bytes and identity
//!
//! A read goes by the descriptor, which was opened under the token's credentials, and needs
//! none. A write runs under the token's: root's would leave the set-user-id bit of a file that is
//! written to, could use up what is reserved for root, and would pass every quota.

mod basic;
mod changes;
mod data;
mod descriptor_reserve;
mod direct;
mod directory;
mod file;
mod index;
mod inotify;
mod list;
mod metadata;
mod names;
mod open;
mod ranges;
mod scan;
mod spellings;
mod stat;
mod walk;

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use proto::file::{FileKind, FileOp, LocalOpen, Operation, Outcome, ShareId};
use rustix::fs::{Mode, OFlags, fgetxattr, open};
use rustix::io::Errno;
use wire::Status;

use self::changes::Changes;
use self::descriptor_reserve::DescriptorReserve;
use self::directory::{Directories, Directory, Run};
use self::file::{Links, OpenFile};
use self::index::Index;
use crate::direct_io_gate::WriteGates;
use crate::table::Table;
use crate::{
    Attempt, Descriptor, Direct, Effort, FileSystem, IoDirection, Listener, Step, Stop, attempt,
    copy, dosattrib, identity,
};

pub use self::changes::DIRECTORIES_MAX as WATCHED_MAX;
pub use self::index::DIRECTORIES_MAX;

/// Bytes that are cut from a file inline; the blocks of more than that take time to free.
pub const CUT_MAX: u64 = 64 << 20;

/// Bytes that are written inline into the page cache. Copying more takes long enough to hand it
/// to a thread, where it may also be held back until older pages are on the disk.
pub const WRITE_MAX: usize = 1 << 20;

/// How a folder is shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Permissions of a new file, less the process's umask.
    pub file_mode: u32,
    /// Permissions of a new directory, less the process's umask.
    pub directory_mode: u32,
    /// Whether names that begin with a dot are hidden.
    pub hide_dot_files: bool,
    /// Bytes that the index of names may take, estimated.
    pub index_bytes: usize,
    /// Whether bytes may go past the page cache.
    pub direct: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            file_mode: 0o644,
            directory_mode: 0o755,
            hide_dot_files: true,
            // Some 600,000 names.
            index_bytes: 64 << 20,
            direct: false,
        }
    }
}

/// A shared folder.
#[derive(Debug)]
pub struct Posix {
    share: ShareId,
    options: Options,
    root: Arc<Directory>,
    directories: Directories,
    index: Index,
    links: Links,
    changes: Changes,
    files: Table<OpenFile>,
    descriptor_reserve: DescriptorReserve,
    /// Whether the file system keeps extended attributes.
    stores_attributes: bool,
    never_blocks: bool,
    /// Whether a buffered write was ever refused because it was not to wait.
    writes_wait: AtomicBool,
    /// Where bytes may go past the page cache.
    write_gates: Option<WriteGates>,
    /// Whether it was said that a file has no O_DIRECT.
    has_warned_no_direct: AtomicBool,
}

/// What the share holds at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Open files.
    pub opens: usize,
    /// Directories whose names are known.
    pub indexed_directories: usize,
    /// Bytes of these names, estimated.
    pub index_bytes: usize,
    /// Directories whose changes are told.
    pub watched_directories: usize,
}

impl Posix {
    /// Shares a folder. The folder itself is opened as the server.
    pub fn new(share: ShareId, root: &Path, options: Options) -> io::Result<Self> {
        identity::own().map_err(|status| io::Error::other(format!("{status:?}")))?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = open(root, flags, Mode::empty())?;
        let key = stat::stat(&fd)?.key();
        let posix = Self {
            share,
            options,
            never_blocks: scan::never_blocks(&fd),
            stores_attributes: stores_attributes(root)?,
            root: Arc::new(Directory {
                fd: Arc::new(fd),
                key,
            }),
            directories: Directories::default(),
            index: Index::new(options.index_bytes),
            links: Links::default(),
            changes: Changes::default(),
            files: Table::new(),
            descriptor_reserve: DescriptorReserve::new(),
            writes_wait: AtomicBool::new(false),
            write_gates: options.direct.then(WriteGates::default),
            has_warned_no_direct: AtomicBool::new(false),
        };
        if !posix.stores_attributes {
            let root = root.display();
            tracing::warn!(%root, "no extended attributes: DOS attributes are lost");
        }
        Ok(posix)
    }

    /// What the share holds at the moment.
    pub fn usage(&self) -> Usage {
        let (indexed_directories, index_bytes) = self.index.usage();
        Usage {
            opens: self.files.len(),
            indexed_directories,
            index_bytes,
            watched_directories: self.changes.usage(),
        }
    }

    /// The file of an open.
    fn file(&self, file: LocalOpen) -> Step<Arc<OpenFile>> {
        if file.share != self.share {
            return Err(Status::FILE_CLOSED.into());
        }
        Ok(self.files.find(file.slot).ok_or(Status::FILE_CLOSED)?)
    }

    /// How far an attempt may go on this file system.
    fn effort(&self, effort: Effort) -> Effort {
        if self.never_blocks {
            Effort::Blocking
        } else {
            effort
        }
    }

    fn run(&self, op: &FileOp, effort: Effort) -> Step<Outcome> {
        match op {
            FileOp::Open(plan) => self.open(plan, effort).map(Outcome::Opened),
            FileOp::OnOpen(file, Operation::Close) => self.close(*file, effort),
            FileOp::OnOpen(_, Operation::CopyRange(_)) if effort == Effort::Cached => {
                Err(Stop::WouldBlock)
            }
            FileOp::OnOpen(file, Operation::CopyRange(plan)) => {
                Ok(copy::between(self, self, *file, plan)?)
            }
            FileOp::OnOpen(file, Operation::Watch { is_tree }) => self.watch(*file, *is_tree),
            FileOp::OnOpen(file, operation) => self.on_open(*file, operation, effort),
        }
    }

    /// Runs an operation on an open under the credentials of its token.
    fn on_open(&self, file: LocalOpen, operation: &Operation, effort: Effort) -> Step<Outcome> {
        let open = self.file(file)?;
        let file = &*open;
        identity::assume(&file.token)?;
        let run = Run {
            token: &file.token,
            effort,
        };
        match operation {
            Operation::Stat => self.stat(file),
            Operation::Overwrite {
                attributes,
                allocation,
            } => self.overwrite(file, *attributes, *allocation, run),
            Operation::SetBasic(changes) => self.set_basic(file, changes),
            Operation::SetMode { mode } => self.set_mode(file, *mode),
            Operation::SetEndOfFile { length } => self.set_end_of_file(file, *length, run),
            Operation::SetAllocation { length } => self.set_allocation(file, *length, run),
            Operation::ZeroRange { range } => self.zero_range(file, range, run),
            Operation::SetSparse { is_sparse } => self.set_sparse(file, *is_sparse),
            Operation::AllocatedRanges { range, limit } => {
                self.allocated_ranges(file, range, *limit, run)
            }
            Operation::Flush => self.flush(file, run),
            Operation::Rename { to, replace } => self.rename(file, to, *replace, run),
            Operation::Link { to, replace } => self.link(file, to, *replace, run),
            Operation::Unlink { path } => self.unlink(file, path, run),
            Operation::CheckEmpty => self.check_empty(file, run),
            Operation::CheckDelete => self.check_delete(file, run),
            Operation::LookUp { path } => self.look_up(path, run),
            Operation::ReadDirectory(plan) => self.read_directory(file, plan, run),
            Operation::Volume => self.volume(),
            Operation::Close | Operation::CopyRange(_) | Operation::Watch { .. } => {
                unreachable!("`run` does these")
            }
        }
    }

    /// Begins to tell what others do to a directory. One system call for it and one for its parent:
    /// what is below is left to a thread.
    fn watch(&self, file: LocalOpen, is_tree: bool) -> Step<Outcome> {
        let open = self.file(file)?;
        identity::assume(&open.token)?;
        self.changes.watch(file.slot, &open, is_tree);
        Ok(Outcome::Done)
    }

    /// Never fails: what is not open any more is closed.
    fn close(&self, file: LocalOpen, effort: Effort) -> Step<Outcome> {
        let Ok(open) = self.file(file) else {
            return Ok(Outcome::Done);
        };
        if effort == Effort::Cached && open.is_unlinked() {
            return Err(Stop::WouldBlock);
        }
        if self.files.remove(file.slot).is_some() {
            if open.kind == FileKind::Directory {
                self.changes.unwatch(file.slot);
            }
            let (key, target) = (open.link.key, open.key);
            drop(open);
            self.links.forget(key);
            if let Some(gates) = &self.write_gates {
                gates.forget(target);
            }
        }
        Ok(Outcome::Done)
    }
}

impl FileSystem for Posix {
    fn execute(&self, op: &FileOp, effort: Effort) -> Attempt<Result<Outcome, Status>> {
        attempt(self.run(op, self.effort(effort)))
    }

    fn read(
        &self,
        file: LocalOpen,
        offset: u64,
        into: &mut [u8],
        effort: Effort,
    ) -> Attempt<Result<usize, Status>> {
        attempt(self.read_bytes(file, offset, into, self.effort(effort)))
    }

    fn write(
        &self,
        file: LocalOpen,
        offset: Option<u64>,
        from: &[u8],
        through: bool,
        effort: Effort,
    ) -> Attempt<Result<usize, Status>> {
        attempt(self.write_bytes(file, offset, from, through, self.effort(effort)))
    }

    fn listen(&self, listener: Listener) {
        self.changes.listen(listener);
    }

    fn descriptor(&self, file: LocalOpen) -> Option<Descriptor> {
        let file = self.file(file).ok()?;
        let is_open = file.is_data();
        is_open.then(|| Descriptor {
            fd: file.fd.clone(),
            token: file.token.clone(),
            never_blocks: self.never_blocks,
        })
    }

    fn direct(&self, file: LocalOpen, direction: IoDirection) -> Option<Direct> {
        self.write_gates.as_ref()?;
        self.past_cache(&*self.file(file).ok()?, direction)
    }

    fn gates_writes(&self) -> bool {
        self.write_gates.is_some()
    }

    fn refuse_direct(&self, file: LocalOpen) {
        if let Ok(file) = self.file(file) {
            self.refuse(&file);
        }
    }
}

/// Whether a folder's file system keeps extended attributes.
fn stores_attributes(root: &Path) -> io::Result<bool> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let fd: OwnedFd = open(root, flags, Mode::empty())?;
    let mut value = [0; dosattrib::MAX_LEN];
    match fgetxattr(&fd, dosattrib::NAME, &mut value[..]) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(false),
        Ok(_) | Err(_) => Ok(true),
    }
}
