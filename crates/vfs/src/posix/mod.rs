//! A share that is a directory of the local file system.
//!
//! `walk` resolves paths beneath the root, `index` finds names without regard to case, `open` opens
//! and creates files. The other modules implement the operations on an open.
//!
//! # Operations that run inline
//!
//! With [`Effort::Cached`], paths are resolved from the kernel's cache only (RESOLVE_CACHED), and a
//! directory that is not in the index is not scanned. The remaining work runs inline, because
//! system calls on cached dentries and inodes cost less than a thread switch: open, fstat and close
//! take 1.4 us, and the wake-up of a thread on another core takes 15 us. Creations, removals,
//! renames, hard links, stat, attributes, times and small truncations run inline. They may still
//! wait for the journal of the file system, as in any server that runs them inline.
//!
//! Operations that read or write the disk by their nature would block: flush, space reservation,
//! copy, zeroing, query of allocated ranges, directory listing, truncation by more than [`CUT_MAX`]
//! bytes, close of a file without a name, move and removal of large named streams, writes of more
//! than [`WRITE_MAX`] bytes or with write-through, and reads outside the page cache. A file system
//! in memory never blocks, and runs everything inline.
//!
//! # Data and credentials
//!
//! A read needs no credentials, because the descriptor was opened under those of the token. A write
//! runs under the token's credentials. As root it would not clear the set-user-id bit of the file,
//! could use space reserved for root, and would ignore every quota.

mod access;
mod basic;
mod changes;
mod client_names;
mod compression;
mod data;
mod denial;
mod descriptor_reserve;
mod direct;
mod directory;
mod ea;
mod file;
mod file_ref;
mod find_root;
mod finished;
mod handle;
mod index;
mod inotify;
mod lasting_handle;
mod list;
mod mapping;
mod metadata;
mod names;
mod new_mode;
mod open;
mod quota;
mod ranges;
mod reflink;
mod reparse;
mod root;
mod scan;
mod sectors;
mod security;
mod security_attribute;
mod spellings;
mod stat;
mod streams;
mod unfinished;
mod unix_owners;
mod volume;
mod walk;
mod xattr;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use proto::file::{FileKind, FileOp, LocalOpen, Operation, Outcome, ShareId};
use proto::path::SharePath;
use proto::report::NeededAccess;
use proto::token::Token;
use wire::Status;
use wire::file_name::NameMapping;

use self::changes::Changes;
use self::descriptor_reserve::DescriptorReserve;
use self::directory::{Directories, Run};
use self::file::{Links, OpenFile};
use self::index::Index;
use self::root::Root;
use self::streams::large::sweep::{self, Sweeps};
use self::streams::opens::OpenStreams;
use self::unfinished::Unfinished;
use self::volume::Volumes;
use crate::accounts::{Accounts, UnixAccounts};
use crate::direct_io_gate::WriteGates;
use crate::ea::Names;
use crate::table::Table;
use crate::{
    Attempt, Denial, Descriptor, Direct, Effort, FileSystem, IoDirection, Listener, Step, Stop,
    attempt, copy, identity,
};

pub use self::changes::DIRECTORIES_MAX as WATCHED_MAX;
pub use self::index::DIRECTORIES_MAX;
pub use self::security_attribute::SecurityAttribute;

/// Maximum number of bytes by which a truncation that must not block ([`Effort::Cached`]) shortens
/// a file. A larger truncation takes long, and returns [`Attempt::WouldBlock`].
pub const CUT_MAX: u64 = 64 << 20;

/// Maximum length in bytes of a write with [`Effort::Cached`] into the page cache. A longer write
/// returns [`Attempt::WouldBlock`], because the copy takes long and the kernel may throttle it
/// until older pages are on the disk.
pub const WRITE_MAX: usize = 1 << 20;

/// Options of a share that is a directory of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Permission bits of a new file, before the umask of the process.
    pub file_mode: u32,
    /// Permission bits of a new directory, before the umask of the process.
    pub directory_mode: u32,
    /// Whether clients see the attribute HIDDEN on files with a name that starts with a dot.
    pub hide_dot_files: bool,
    /// Treatment of file names that SMB cannot transmit, such as names with a colon: clients see
    /// other names, or do not see the files.
    pub names: NameMapping,
    /// Maximum memory in bytes, estimated, of the index by which the share finds file names without
    /// regard to case.
    pub index_bytes: usize,
    /// Whether large reads and writes of aligned ranges bypass the page cache (O_DIRECT).
    pub direct: bool,
    /// The extended attribute with the security descriptors of files.
    pub security_attribute: SecurityAttribute,
    /// Whether listings leave out entries that the user may not read (access-based enumeration).
    pub hides_unreadable: bool,
    /// Whether named streams that do not fit into an extended attribute are kept in the hidden
    /// directory `.smbeam-streams` of the share.
    pub large_streams: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            file_mode: 0o644,
            directory_mode: 0o755,
            hide_dot_files: true,
            names: NameMapping::Map,
            // Space for about 600,000 names.
            index_bytes: 64 << 20,
            direct: false,
            security_attribute: SecurityAttribute::default(),
            hides_unreadable: false,
            large_streams: false,
        }
    }
}

/// A file system that serves a directory of this machine as a share.
#[derive(Debug)]
pub struct Posix {
    share: ShareId,
    options: Options,
    accounts: Arc<dyn Accounts>,
    /// The account that owns all files, if descriptors alone decide about the access of users.
    service: Option<Arc<Token>>,
    root: Root,
    volumes: Volumes,
    directories: Directories,
    index: Index,
    links: Links,
    streams: OpenStreams,
    sweeps: Sweeps,
    changes: Changes,
    files: Table<OpenFile>,
    unfinished: Unfinished,
    descriptor_reserve: DescriptorReserve,
    /// Gates between direct and cached writes; `None` without direct I/O.
    write_gates: Option<WriteGates>,
    /// Whether the log already has the warning that a file does not support direct I/O.
    has_warned_no_direct: AtomicBool,
}

/// The resources that a share of a local directory uses at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Number of open files of the share.
    pub opens: usize,
    /// Number of directories in the index by which the share finds file names without regard to
    /// case.
    pub indexed_directories: usize,
    /// Memory in bytes, estimated, of the index by which the share finds file names without regard
    /// to case.
    pub index_bytes: usize,
    /// Number of directories that the server watches for changes by other processes.
    pub watched_directories: usize,
}

impl Posix {
    /// Makes a share of the directory at the path `root`. `share` is the identifier of the share
    /// in all file operations. The directory need not exist yet: each open of a file looks it up,
    /// and fails with NETWORK_NAME_DELETED while it does not exist.
    ///
    /// # Errors
    /// Fails when `root` is relative and the working directory of the process does not exist.
    pub fn new(share: ShareId, root: &Path, options: Options) -> io::Result<Self> {
        Ok(Self {
            share,
            options,
            accounts: Arc::new(UnixAccounts),
            service: None,
            root: Root::new(root)?,
            volumes: Volumes::default(),
            directories: Directories::default(),
            index: Index::new(options.index_bytes, options.names),
            links: Links::default(),
            streams: OpenStreams::default(),
            sweeps: Sweeps::default(),
            changes: Changes::new(options.names),
            files: Table::new(),
            unfinished: Unfinished::default(),
            descriptor_reserve: DescriptorReserve::new(),
            write_gates: options.direct.then(WriteGates::default),
            has_warned_no_direct: AtomicBool::new(false),
        })
    }

    /// Returns the share with further SIDs of accounts: descriptors that name them count for these
    /// accounts.
    #[must_use]
    pub fn with_accounts(self, accounts: Arc<dyn Accounts>) -> Self {
        Self { accounts, ..self }
    }

    /// Returns the share with descriptors that decide alone about the access of users. All
    /// operations run with the credentials `service`, which own the new files.
    #[must_use]
    pub fn with_service_account(self, service: Arc<Token>) -> Self {
        let service = Some(service);
        Self { service, ..self }
    }

    /// The credentials with which an operation of a user runs.
    fn credentials<'a>(&'a self, user: &'a Arc<Token>) -> &'a Arc<Token> {
        self.service.as_ref().unwrap_or(user)
    }

    /// Whether descriptors alone decide about the access of users.
    fn has_service_account(&self) -> bool {
        self.service.is_some()
    }

    /// Opens the root directory of the share with the credentials of the server, and closes it
    /// again.
    ///
    /// # Errors
    /// The reason why clients cannot use the share now: the path does not exist, is no directory,
    /// or cannot be opened.
    pub fn check_root(&self) -> io::Result<()> {
        identity::own().map_err(|status| io::Error::other(format!("{status:?}")))?;
        self.root.check()
    }

    /// Removes the data of large named streams without a file, if they are at least `min_age` old:
    /// younger ones may belong to an operation in progress. A local copy of a file may need them,
    /// so they are removed at the second call that finds no copy. Returns their number. The share
    /// does this itself when it is first used and then once a day or sooner, with 10 minutes.
    /// Blocks the thread, and leaves it with the credentials of the server.
    ///
    /// # Errors
    /// The root or the directory of the streams cannot be opened, or other users can change it.
    pub fn sweep_streams(&self, min_age: Duration) -> io::Result<usize> {
        let token = identity::process_token();
        let root = identity::own().map_err(Stop::Failed);
        let root = root.and_then(|()| self.root(&token, Effort::Blocking));
        let root = root.map_err(|stop| io::Error::other(format!("{stop:?}")))?;
        sweep::sweep(&root, min_age).map(|swept| swept.removed)
    }

    /// Returns the numbers of opens, watches and indexed directories of the share at the moment.
    pub fn usage(&self) -> Usage {
        let (indexed_directories, index_bytes) = self.index.usage();
        Usage {
            opens: self.files.len(),
            indexed_directories,
            index_bytes,
            watched_directories: self.changes.usage(),
        }
    }

    /// The file of an open. Fails with FILE_CLOSED if it is not open.
    fn file(&self, file: LocalOpen) -> Step<Arc<OpenFile>> {
        if file.share != self.share {
            return Err(Status::FILE_CLOSED.into());
        }
        Ok(self.files.find(file.slot).ok_or(Status::FILE_CLOSED)?)
    }

    fn run(&self, op: &FileOp, effort: Effort) -> Step<Outcome> {
        match op {
            FileOp::Open(plan) => self.open(plan, effort).map(Outcome::Opened),
            FileOp::Reopen(plan) => self.reopen_by_handle(plan, effort).map(Outcome::Opened),
            FileOp::FindRoot { share: _, token } => {
                self.find_root(token, effort)?;
                Ok(Outcome::Done)
            }
            FileOp::FindLink { token, path, .. } => self.find_link(token, path, effort),
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
            user: &file.user,
            root: &file.root,
            effort,
            is_exact: file.is_exact,
        };
        match operation {
            Operation::Stat => self.stat(file, run),
            Operation::Overwrite {
                attributes,
                allocation,
            } => self.overwrite(file, *attributes, *allocation, run),
            Operation::SetBasic(changes) => self.set_basic(file, changes, run),
            Operation::SetMode { mode, mask } => self.set_mode(file, *mode, *mask, run),
            Operation::QuerySecurity => self.query_security(file),
            Operation::SetSecurity(change) => self.set_security(file, change, run),
            Operation::SetEndOfFile { length } => self.set_end_of_file(file, *length, run),
            Operation::SetAllocation { length } => self.set_allocation(file, *length, run),
            Operation::ZeroRange { range } => self.zero_range(file, range, run),
            Operation::Trim { range } => self.trim(file, range, run),
            Operation::CloneRange(plan) => self.clone_range(file, plan, run),
            Operation::SetCompression { is_compressed } => {
                compression::set(file, *is_compressed)?;
                self.stat(file, run)
            }
            Operation::SetSparse { is_sparse } => self.set_sparse(file, *is_sparse, run),
            Operation::AllocatedRanges { range, limit } => {
                self.allocated_ranges(file, range, *limit, run)
            }
            Operation::Flush => self.flush(file, run),
            Operation::Rename { to, replace } => self.rename(file, to, *replace, run),
            Operation::Link { to, replace } => self.link(file, to, *replace, run),
            Operation::Unlink { path } => match path.stream() {
                Some(stream) => self.remove_stream(file, stream, run),
                None => self.unlink(file, path, run),
            },
            Operation::RenameStream { to, replace } => self.rename_stream(file, to, *replace, run),
            Operation::ListStreams => self.list_streams(file, run),
            Operation::ReadReparse => self.read_reparse(file),
            Operation::SetReparse { tag, data } => self.set_reparse(file, *tag, data, run),
            Operation::RemoveReparse { tag } => self.remove_reparse(file, *tag),
            Operation::CheckEmpty => self.check_empty(file, run),
            Operation::CheckDelete => self.check_delete(file, run),
            Operation::LookUp { path } => self.look_up(path, run),
            Operation::ReadDirectory(plan) => self.read_directory(file, plan, run),
            Operation::ReadHandle => handle::read(file).map(Outcome::Handle),
            Operation::QueryEas => {
                let eas = ea::query(file.file_ref(), Names::of(file.is_exact), run.effort)?;
                Ok(Outcome::Eas(eas))
            }
            Operation::SetEas { eas } => {
                ea::set(file.file_ref(), eas, Names::of(file.is_exact), run.effort)?;
                self.stat(file, run)
            }
            Operation::QueryQuotas(selection) => self.query_quotas(file, selection, run.effort),
            Operation::SetQuotas { quotas } => self.set_quotas(file, quotas, run.effort),
            Operation::Volume => self.volume(file),
            Operation::Close | Operation::CopyRange(_) | Operation::Watch { .. } => {
                unreachable!("`run` does these")
            }
        }
    }

    /// Starts to report changes in a directory by others. Takes one system call for the directory
    /// and one for its parent; the thread marks the tree below it.
    fn watch(&self, file: LocalOpen, is_tree: bool) -> Step<Outcome> {
        let open = self.file(file)?;
        identity::assume(&open.token)?;
        self.changes.watch(file.slot, &open, is_tree);
        Ok(Outcome::Done)
    }

    /// Closes an open. Never fails: an unknown open counts as closed.
    fn close(&self, file: LocalOpen, effort: Effort) -> Step<Outcome> {
        let Ok(open) = self.file(file) else {
            return Ok(Outcome::Done);
        };
        let is_large = open.stream.as_ref().is_some_and(|stream| stream.is_large());
        if effort == Effort::Cached && (open.is_unlinked() || is_large) {
            return Err(Stop::WouldBlock);
        }
        if self.files.remove(file.slot).is_some() {
            if open.kind == FileKind::Directory {
                self.changes.unwatch(file.slot);
            }
            self.release(open);
        }
        Ok(Outcome::Done)
    }

    /// Drops an open that is not in the table, and what only it used.
    fn release(&self, open: impl std::borrow::Borrow<OpenFile>) {
        let file: &OpenFile = open.borrow();
        let (key, target, is_stream) = (file.link.key, file.key, file.stream.is_some());
        drop(open);
        self.links.forget(key);
        if is_stream {
            self.streams.forget(target);
        }
        if let Some(gates) = &self.write_gates {
            gates.forget(target);
        }
    }
}

impl FileSystem for Posix {
    fn check_root(&self) -> io::Result<()> {
        Self::check_root(self)
    }

    fn execute(&self, op: &FileOp, effort: Effort) -> Attempt<Result<Outcome, Status>> {
        attempt(self.run(op, self.volumes.effort(effort)))
    }

    fn read(
        &self,
        file: LocalOpen,
        offset: u64,
        into: &mut [u8],
        effort: Effort,
    ) -> Attempt<Result<usize, Status>> {
        attempt(self.read_bytes(file, offset, into, effort))
    }

    fn write(
        &self,
        file: LocalOpen,
        offset: Option<u64>,
        from: &[u8],
        through: bool,
        effort: Effort,
    ) -> Attempt<Result<usize, Status>> {
        attempt(self.write_bytes(file, offset, from, through, effort))
    }

    fn find_denial(
        &self,
        token: &Arc<Token>,
        needs: &[(SharePath, NeededAccess)],
    ) -> Option<Denial> {
        self.denial(token, needs)
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
            never_blocks: file.volume.never_blocks,
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
