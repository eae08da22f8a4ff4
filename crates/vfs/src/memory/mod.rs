//! Files in memory, for tests and the simulator.
//!
//! A share in memory behaves like a posix share and is deterministic: it has one lock, makes no
//! system call and reads no clock. Its time advances by 100 ns with each operation, or to the value
//! of [`Memory::set_time`]. [`Faults`] makes operations fail. Symbolic links and special files do
//! not exist.

mod bytes;
mod data;
mod ea;
mod list;
mod names;
mod open;
mod ranges;
mod reparse;
mod security;
mod streams;
mod tree;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use proto::disk_quota::QuotaState;
use proto::file::{
    BasicChanges, DirectoryEntry, FileHandle, FileKind, FileOp, LocalOpen, Operation, Outcome,
    ShareId, VolumeInfo, VolumeKind,
};
use proto::token::Token;
use wire::access::{AccessMask, FileAttributes};
use wire::{FileTime, Status};

use self::bytes::PAGE;
use self::tree::{Content, Location, NodeId, ROOT, Tree};
use crate::{Attempt, Descriptor, Effort, FileSystem, Step, Stop, attempt, attributes};

/// The time at which the clock of a new share in memory starts: 2020-01-01 UTC.
pub const EPOCH: FileTime = FileTime(132_223_104_000_000_000);

/// Faults that a share in memory injects into operations, for tests. The default injects none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Operations that fail: the number of the operation (see [`Memory::operations`]) and the
    /// status that it returns.
    pub fail: BTreeMap<u64, Status>,
    /// Maximum number of bytes that a read returns, even before the end of the file; `None` for no
    /// limit.
    pub short_read: Option<usize>,
    /// Total size in bytes that all files may have; `None` for no limit. A write beyond it fails
    /// with DISK_FULL.
    pub space: Option<u64>,
    /// Whether every operation that must not block ([`Effort::Cached`]) returns
    /// [`Attempt::WouldBlock`].
    pub would_block: bool,
}

/// Options of a share in memory: owner of the root directory, and modes of new files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Unix uid of the root directory's owner.
    pub uid: u32,
    /// Unix gid of the root directory's group.
    pub gid: u32,
    /// Permission bits of the root directory.
    pub root_mode: u32,
    /// Permission bits of a new file.
    pub file_mode: u32,
    /// Permission bits of a new directory.
    pub directory_mode: u32,
}

impl Default for Options {
    fn default() -> Self {
        let (file_mode, directory_mode) = (0o644, 0o755);
        Self {
            uid: 0,
            gid: 0,
            root_mode: 0o777,
            file_mode,
            directory_mode,
        }
    }
}

/// A share in memory, for tests and the simulator. Its files are lost when it is dropped.
#[derive(Debug)]
pub struct Memory {
    share: ShareId,
    options: Options,
    state: Mutex<State>,
}

/// The mutable state of a share.
#[derive(Debug)]
struct State {
    tree: Tree,
    opens: BTreeMap<u64, Open>,
    next_slot: u64,
    operations: u64,
    faults: Faults,
    share: ShareId,
    options: Options,
}

/// An open file.
#[derive(Debug)]
struct Open {
    /// The data of the open: those of the file, or those of a named stream.
    node: NodeId,
    /// The file of a named stream; `None` for the file itself.
    base: Option<NodeId>,
    location: Location,
    token: Arc<Token>,
    /// Access rights for reads and writes: the granted and the implied ones.
    access: AccessMask,
    /// The remaining entries of the listing; `None` before the first listing.
    listing: Option<VecDeque<DirectoryEntry>>,
}

impl Memory {
    /// Makes a share with an empty root directory, which has owner and mode of `options`. `share`
    /// is the identifier of the share in all file operations: it is in the [`LocalOpen`] of each
    /// open.
    pub fn new(share: ShareId, options: Options) -> Self {
        let tree = Tree::new(EPOCH, options.uid, options.gid, options.root_mode);
        let state = State {
            tree,
            opens: BTreeMap::new(),
            next_slot: 1,
            operations: 0,
            faults: Faults::default(),
            share,
            options,
        };
        Self {
            share,
            options,
            state: Mutex::new(state),
        }
    }

    /// Returns the identifier of the share that was passed to [`Memory::new`].
    pub fn share(&self) -> ShareId {
        self.share
    }

    /// Returns the options that the share was made with.
    pub fn options(&self) -> Options {
        self.options
    }

    /// Calls `change` with the current faults of the share, once and before it returns. The share
    /// injects the changed faults into all later operations.
    pub fn set_faults(&self, change: impl FnOnce(&mut Faults)) {
        change(&mut self.lock().faults);
    }

    /// Returns the number of operations so far, including reads and writes. The next operation has
    /// this number in [`Faults::fail`].
    pub fn operations(&self) -> u64 {
        self.lock().operations
    }

    /// Returns the number of opens of the share that are not closed.
    pub fn opens(&self) -> usize {
        self.lock().opens.len()
    }

    /// Closes all opens of the share, as if the server process had ended. For tests.
    pub fn drop_opens(&self) {
        let mut state = self.lock();
        let slots: Vec<u64> = state.opens.keys().copied().collect();
        for slot in slots {
            let share = state.share;
            state.close(LocalOpen { share, slot });
        }
    }

    /// Sets the clock of the share to `now`, which may be before its present time. Each later
    /// change of a file advances the clock.
    pub fn set_time(&self, now: FileTime) {
        self.lock().tree.now = now;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FileSystem for Memory {
    fn execute(&self, op: &FileOp, effort: Effort) -> Attempt<Result<Outcome, Status>> {
        let mut state = self.lock();
        // A close never fails.
        if let FileOp::OnOpen(file, Operation::Close) = op {
            state.close(*file);
            return Attempt::Done(Ok(Outcome::Done));
        }
        attempt(
            state
                .begin(effort)
                .and_then(|()| state.execute(op).map_err(Stop::Failed)),
        )
    }

    fn read(
        &self,
        file: LocalOpen,
        offset: u64,
        into: &mut [u8],
        effort: Effort,
    ) -> Attempt<Result<usize, Status>> {
        let mut state = self.lock();
        let step = state.begin(effort);
        attempt(step.and_then(|()| Ok(state.read(file, offset, into)?)))
    }

    fn write(
        &self,
        file: LocalOpen,
        offset: Option<u64>,
        from: &[u8],
        _through: bool,
        effort: Effort,
    ) -> Attempt<Result<usize, Status>> {
        let mut state = self.lock();
        let step = state.begin(effort);
        attempt(step.and_then(|()| Ok(state.write(file, offset, from)?)))
    }

    fn descriptor(&self, _file: LocalOpen) -> Option<Descriptor> {
        None
    }
}

impl Open {
    /// The file of the open.
    fn file(&self) -> NodeId {
        self.base.unwrap_or(self.node)
    }
}

impl State {
    /// Counts an operation, advances the clock, and returns the injected fault if one applies.
    fn begin(&mut self, effort: Effort) -> Step<()> {
        if self.faults.would_block && effort == Effort::Cached {
            return Err(Stop::WouldBlock);
        }
        let number = self.operations;
        self.operations += 1;
        self.tree.now.0 += 1;
        match self.faults.fail.get(&number) {
            Some(status) => Err(Stop::Failed(*status)),
            None => Ok(()),
        }
    }

    fn execute(&mut self, op: &FileOp) -> Result<Outcome, Status> {
        let (file, operation) = match op {
            FileOp::Open(plan) => return self.open(plan).map(Outcome::Opened),
            FileOp::Reopen(plan) => return self.reopen(plan).map(Outcome::Opened),
            FileOp::FindRoot { .. } => return Ok(Outcome::Done),
            FileOp::FindLink { token, path, .. } => {
                return Ok(Outcome::Link(self.first_reparse(token, path)));
            }
            FileOp::OnOpen(file, operation) => (*file, operation),
        };
        match operation {
            Operation::Close => Ok(self.close(file)),
            Operation::Stat => self.stat(file),
            Operation::Overwrite {
                attributes,
                allocation,
            } => self.overwrite(file, *attributes, *allocation),
            Operation::SetBasic(changes) => self.set_basic(file, changes),
            Operation::SetMode { mode, mask } => self.set_mode(file, *mode, *mask),
            Operation::QuerySecurity => self.query_security(file),
            Operation::SetSecurity(change) => self.set_security(file, change),
            Operation::SetEndOfFile { length } => self.set_end_of_file(file, *length),
            Operation::SetAllocation { length } => self.set_allocation(file, *length),
            Operation::CopyRange(plan) => self.copy_range(file, plan),
            Operation::ZeroRange { range } => self.zero_range(file, range),
            Operation::Trim { range } => self.trim(file, range),
            Operation::CloneRange(plan) => self.clone_range(file, plan),
            Operation::SetCompression {
                is_compressed: true,
            } => Err(Status::NOT_SUPPORTED),
            Operation::SetCompression {
                is_compressed: false,
            } => self.stat(file),
            Operation::SetSparse { is_sparse } => self.set_sparse(file, *is_sparse),
            Operation::AllocatedRanges { range, limit } => {
                self.allocated_ranges(file, range, *limit)
            }
            Operation::Rename { to, replace } => self.rename(file, to, *replace),
            Operation::Link { to, replace } => self.link(file, to, *replace),
            Operation::Unlink { path } => match path.stream() {
                Some(stream) => self.remove_stream(file, stream),
                None => self.unlink(file, path),
            },
            Operation::RenameStream { to, replace } => self.rename_stream(file, to, *replace),
            Operation::ListStreams => self.list_streams(file),
            Operation::ReadReparse => self.read_reparse(file),
            Operation::SetReparse { tag, data } => self.set_reparse(file, *tag, data),
            Operation::RemoveReparse { tag } => self.remove_reparse(file, *tag),
            Operation::CheckEmpty => self.check_empty(file),
            Operation::CheckDelete => self.check_delete(file),
            Operation::LookUp { path } => self.look_up(file, path),
            Operation::ReadDirectory(plan) => self.read_directory(file, plan),
            Operation::ReadHandle => {
                let node = self.open_of(file)?.file();
                Ok(Outcome::Handle(FileHandle(node.to_le_bytes().to_vec())))
            }
            Operation::QueryEas => self.query_eas(file),
            Operation::SetEas { eas } => self.set_eas(file, eas),
            Operation::QueryQuotas(_) | Operation::SetQuotas { .. } => Err(Status::NOT_SUPPORTED),
            Operation::Volume => self.volume(file),
            // Memory needs no flush, and only the functions for tests change it from outside.
            Operation::Flush | Operation::Watch { .. } => self.open_of(file).map(|_| Outcome::Done),
        }
    }

    fn open_of(&self, file: LocalOpen) -> Result<&Open, Status> {
        let open = self
            .opens
            .get(&file.slot)
            .filter(|_| file.share == self.share);
        open.ok_or(Status::FILE_CLOSED)
    }

    fn open_mut(&mut self, file: LocalOpen) -> Result<&mut Open, Status> {
        let open = self
            .opens
            .get_mut(&file.slot)
            .filter(|_| file.share == self.share);
        open.ok_or(Status::FILE_CLOSED)
    }

    fn close(&mut self, file: LocalOpen) -> Outcome {
        if self.open_of(file).is_ok()
            && let Some(open) = self.opens.remove(&file.slot)
        {
            for node in [Some(open.node), open.base].into_iter().flatten() {
                self.tree.node_mut(node).opens -= 1;
                self.tree.forget(node);
            }
        }
        Outcome::Done
    }

    fn stat(&self, file: LocalOpen) -> Result<Outcome, Status> {
        let open = self.open_of(file)?;
        let metadata = self.tree.metadata(open.file(), &open.location.name);
        Ok(Outcome::Metadata(match open.base {
            Some(_) => self.tree.of_stream(open.node, metadata),
            None => metadata,
        }))
    }

    fn set_basic(&mut self, file: LocalOpen, changes: &BasicChanges) -> Result<Outcome, Status> {
        let id = self.open_of(file)?.file();
        let BasicChanges {
            created,
            accessed,
            written,
            changed,
            attributes,
        } = *changes;
        let now = self.tree.now;
        let node = self.tree.node_mut(id);
        node.created = created.unwrap_or(node.created);
        node.accessed = accessed.unwrap_or(node.accessed);
        node.written = written.unwrap_or(node.written);
        node.changed = changed.unwrap_or(now);
        node.stored = attributes.map_or(node.stored, |asked| {
            attributes::replaced(node.stored, asked)
        });
        self.stat(file)
    }

    fn set_mode(&mut self, file: LocalOpen, mode: u32, mask: u32) -> Result<Outcome, Status> {
        let id = self.open_of(file)?.file();
        let now = self.tree.now;
        let node = self.tree.node_mut(id);
        node.mode = node.mode & !mask | mode & mask;
        // The mode wins over the descriptor, as on disk.
        node.security = None;
        node.changed = now;
        self.stat(file)
    }

    fn overwrite(
        &mut self,
        file: LocalOpen,
        attributes: FileAttributes,
        allocation: u64,
    ) -> Result<Outcome, Status> {
        let id = self.data_of(file, crate::rights::WRITE_DATA)?;
        self.reserve(id, 0)?;
        self.bytes_mut(id).set_len(0);
        self.tree.remove_streams(id);
        self.tree.node_mut(id).stored = attributes::of_new(attributes, FileKind::File);
        self.reserve(id, allocation)?;
        self.tree.touch(id);
        self.stat(file)
    }

    fn volume(&self, file: LocalOpen) -> Result<Outcome, Status> {
        self.open_of(file)?;
        let total = self.faults.space.unwrap_or(1 << 40);
        let free = total.saturating_sub(self.tree.used()) / PAGE;
        Ok(Outcome::Volume(VolumeInfo {
            block: PAGE as u32,
            total: total / PAGE,
            free,
            available: free,
            sector: 512,
            physical_sector: PAGE as u32,
            serial: 1,
            max_name: 255,
            kind: VolumeKind::Full,
            is_read_only: false,
            has_sparse_files: true,
            has_named_streams: true,
            has_extended_attributes: true,
            has_shared_extents: true,
            has_compression: false,
            quotas: QuotaState::None,
            created: self.tree.node(ROOT).created,
            total_files: 0,
            free_files: 0,
        }))
    }

    /// The data of a node that is a file.
    fn bytes_mut(&mut self, id: NodeId) -> &mut bytes::Bytes {
        match &mut self.tree.node_mut(id).content {
            Content::File(bytes) => bytes,
            Content::Directory(..) => panic!("only files are asked for their bytes"),
        }
    }
}
