//! The file system: the operations of the kernel as operations of the client library.

mod data;
mod directory_lease;
mod entries;
mod keep;
mod lock;
mod new_owner;
mod open;
mod remove;
mod set;
mod space;
mod write_behind;
mod xattr;

pub(crate) use new_owner::Caller;
pub(crate) use set::Wanted;
pub(crate) use space::Sought;

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::{Duration, SystemTime};

use fuser::{Errno, FileAttr, FileHandle, FileType, Generation, INodeNo, Notifier};
use smbeam_client::{LeaseState, Share};

use crate::attributes::{Node, UNPROTECTED};
use crate::cached_names::CachedNames;
use crate::counters::{Counters, MountStatistics};
use crate::directory::OpenDirectory;
pub(crate) use crate::errno::Answer;
use crate::errno::errno;
use crate::handles::{Handles, lock};
use crate::held::Budget;
use crate::inodes::Inodes;
use crate::invalidator::Invalidator;
use crate::kept::Kept;
use crate::leased::{LEASED, Leased, QUIET};
use crate::mode::show_changes;
use crate::names::{Names, join};
use crate::opens::{OpenFile, Opens};
use crate::options::{Cache, MountOptions};
use crate::timer::Timer;

/// A mounted share.
pub(crate) struct Volume {
    pub(crate) share: Share,
    pub(crate) options: MountOptions,
    pub(crate) inodes: Mutex<Inodes>,
    pub(crate) files: Handles<OpenFile>,
    pub(crate) directories: Handles<OpenDirectory>,
    /// Set when the kernel has mounted the file system.
    pub(crate) notifier: OnceLock<Notifier>,
    pub(crate) invalidator: Invalidator,
    /// Lets the kernel drop names.
    pub(crate) name_invalidator: Invalidator,
    /// The directories with leases, the oldest first.
    pub(crate) directory_leases: Mutex<VecDeque<Weak<Opens>>>,
    pub(crate) timer: Timer,
    pub(crate) counters: Counters,
    /// Opens that stay after their close.
    pub(crate) kept: Kept,
    /// Limits of held data.
    pub(crate) budget: Budget,
    /// Limit of names that the kernel caches under leases on directories.
    pub(crate) cached_names: Arc<CachedNames>,
    /// Whether the server has refused to give a file to another user, or rights on a file of
    /// another user.
    pub(crate) is_ordinary_user: AtomicBool,
}

/// The reply to a lookup, and to a request that makes a file.
pub(crate) struct Found {
    pub(crate) attributes: FileAttr,
    pub(crate) generation: Generation,
    /// Time for which the kernel may use name and attributes without a lease on the directory.
    pub(crate) time: Duration,
    /// The lease that protects the name.
    pub(crate) leased: Option<Leased>,
    /// Time for which the kernel may use the name under that lease.
    leased_time: Duration,
    /// Whether that lease protects the attributes too.
    is_alone: bool,
}

impl Found {
    /// The times for which the kernel may use the name and the attributes.
    pub(crate) fn times(&self, is_leased: bool) -> (Duration, Duration) {
        match (is_leased, self.is_alone) {
            (true, true) => (self.leased_time, LEASED),
            (true, false) => (self.leased_time, self.time),
            (false, _) => (self.time, self.time),
        }
    }
}

/// The reply to a request for attributes.
pub(crate) struct Shown {
    pub(crate) attributes: FileAttr,
    /// Time for which the kernel may use them without leases on directories.
    pub(crate) time: Duration,
    /// The leases that protect them together.
    pub(crate) leases: Option<Vec<Leased>>,
}

impl Shown {
    /// Time for which the kernel may use the attributes.
    pub(crate) fn time(&self, is_leased: bool) -> Duration {
        match is_leased {
            true => LEASED,
            false => self.time,
        }
    }
}

/// The rights of a lease that only one client can hold.
const EXCLUSIVE: LeaseState = LeaseState(LeaseState::READ_CACHING.0 | LeaseState::WRITE_CACHING.0);
/// Largest number of blocks that statfs can report.
const BLOCKS_MAX: u64 = i64::MAX as u64;

/// Size and free space of the volume, in blocks.
pub(crate) struct Space {
    pub(crate) total: u64,
    pub(crate) free: u64,
    pub(crate) available: u64,
    pub(crate) block: u32,
}

impl Volume {
    /// The file system on the directory `base` of a share.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub(crate) fn new(share: Share, base: &str, options: MountOptions) -> io::Result<Arc<Self>> {
        let (invalidator, queue) = Invalidator::new();
        let (name_invalidator, names_queue) = Invalidator::new();
        let volume = Arc::new(Self {
            share,
            options,
            inodes: Mutex::new(Inodes::new(base)),
            files: Handles::default(),
            directories: Handles::default(),
            notifier: OnceLock::new(),
            invalidator,
            name_invalidator,
            directory_leases: Mutex::default(),
            timer: Timer::new()?,
            counters: Counters::default(),
            kept: Kept::default(),
            budget: Budget::default(),
            cached_names: Arc::default(),
            is_ordinary_user: AtomicBool::new(false),
        });
        let dropping = Arc::downgrade(&volume);
        queue.start("mount-pages", move |ino| {
            if let Some(volume) = dropping.upgrade() {
                volume.drop_pages(ino);
            }
        })?;
        let dropping = Arc::downgrade(&volume);
        names_queue.start("mount-names", move |ino| {
            if let Some(volume) = dropping.upgrade() {
                volume.drop_names(ino);
            }
        })?;
        Ok(volume)
    }

    /// Counters and state of the mount.
    pub(crate) fn statistics(&self) -> MountStatistics {
        let counters = &self.counters;
        MountStatistics {
            requests: counters.requests.now(),
            read: counters.read.now(),
            written: counters.written.now(),
            breaks: counters.breaks.now(),
            invalidations: counters.invalidations.now(),
            inodes: lock(&self.inodes).len() as u64,
            open_files: self.files.len() as u64,
            kept_files: self.kept.len() as u64,
            held: self.budget.held(),
            sent: counters.sent.now(),
        }
    }

    /// The form of names on the server.
    pub(crate) fn names(&self) -> Names {
        match self.share.uses_posix() {
            true => Names::Exact,
            false => Names::Mapped,
        }
    }

    /// Path of an inode in the share.
    pub(crate) fn path(&self, ino: u64) -> Answer<String> {
        lock(&self.inodes).path(ino)
    }

    /// Opens of an inode.
    pub(crate) fn opens(&self, ino: u64) -> Answer<Arc<Opens>> {
        lock(&self.inodes).opens(ino)
    }

    /// Name on the server and path of a name in a directory.
    pub(crate) fn named(&self, parent: u64, name: &OsStr) -> Answer<(String, String)> {
        let name = self.names().to_server(name)?;
        let directory = lock(&self.inodes).path(parent)?;
        let path = join(&directory, &name);
        Ok((name, path))
    }

    /// Finds a file by its name.
    pub(crate) async fn lookup(self: &Arc<Self>, parent: u64, name: &OsStr) -> Answer<Found> {
        let leased = self.leased(parent, Some(name)).await;
        let (name, path) = self.named(parent, name)?;
        match self.node(&path).await {
            Ok(node) => {
                let mut found = self.found(parent, name, &node)?;
                found.leased = leased;
                Ok(found)
            }
            Err(Errno::ENOENT) if leased.is_some() => Ok(missing(leased)),
            Err(error) => Err(error),
        }
    }

    /// Queries a file by its path.
    pub(crate) async fn node(&self, path: &str) -> Answer<Node> {
        let metadata = self.share.symlink_metadata(path).await;
        let node = Node::new(metadata.map_err(|error| errno(&error))?);
        self.with_reparse_point(path, node).await
    }

    /// Queries the rest of a file that has a reparse point.
    async fn with_reparse_point(&self, path: &str, mut node: Node) -> Answer<Node> {
        if node.needs_reparse_point() {
            let point = self.share.reparse_point(path).await;
            if let Some(point) = point.map_err(|error| errno(&error))? {
                node.add(&point);
            }
        }
        Ok(node)
    }

    /// Takes note of a file, and of the reference to it that the kernel gets with the reply.
    pub(crate) fn found(&self, parent: u64, name: String, node: &Node) -> Answer<Found> {
        let bound = lock(&self.inodes).bind(&(parent, name), node.identity())?;
        self.note_mode(bound.ino, node);
        let opens = self.opens(bound.ino)?;
        let mut node = *node;
        show_held(&mut node, &opens);
        let is_single = node.metadata.links.is_some_and(|links| links <= 1);
        Ok(Found {
            attributes: node.attributes(bound.ino, &self.options),
            generation: Generation(bound.generation),
            time: self.name_time(),
            leased: None,
            leased_time: match node.kind {
                // The end of the lease does not end the names of directories: `drop_names`.
                FileType::Directory => self.options.attribute_time,
                _ => LEASED,
            },
            is_alone: is_single
                && is_quiet(&node)
                && opens.is_empty()
                && node.kind != FileType::Directory,
        })
    }

    pub(crate) fn forget(&self, ino: u64, count: u64) {
        lock(&self.inodes).forget(ino, count);
    }

    /// Queries the attributes of an inode. Without a name, an open of the file answers. The kernel
    /// names a handle before a read(2) from its pages.
    pub(crate) async fn attributes(&self, ino: u64, handle: Option<FileHandle>) -> Answer<Shown> {
        let opens = self.opens(ino)?;
        let leases = self.leases_of(ino);
        let node = self.node_of(ino).await?;
        if handle.is_some() {
            self.before_read(&opens).await;
        }
        self.shown(ino, node, leases)
    }

    /// The attributes of an inode for the kernel. `leases` are those of [`Self::leases_of`] from
    /// before the query of `node`.
    fn shown(&self, ino: u64, mut node: Node, leases: Option<Vec<Leased>>) -> Answer<Shown> {
        let opens = self.opens(ino)?;
        self.note_mode(ino, &node);
        show_held(&mut node, &opens);
        let is_single = node.metadata.links.is_some_and(|links| links <= 1);
        let is_directory = node.kind == FileType::Directory;
        Ok(Shown {
            attributes: node.attributes(ino, &self.options),
            time: self.attribute_time(ino),
            leases: leases.filter(|_| (is_single && is_quiet(&node)) || is_directory),
        })
    }

    /// Queries an inode.
    pub(crate) async fn node_of(&self, ino: u64) -> Answer<Node> {
        let (path, open) = {
            let inodes = lock(&self.inodes);
            (inodes.path(ino), inodes.opens(ino)?.find(|_| true))
        };
        match open {
            Some(open) => {
                let metadata = open.file.metadata().await;
                let mut metadata = metadata.map_err(|error| errno(&error))?;
                if path.is_err() {
                    // The extensions report the remaining links themselves.
                    metadata.links = Some(0);
                }
                Ok(Node::new(metadata))
            }
            None => self.node(&path?).await,
        }
    }

    /// Time for which the kernel may use attributes. Under an exclusive lease no other client has
    /// the file open, so size and time of the last write are right. Attributes can change.
    pub(crate) fn attribute_time(&self, ino: u64) -> Duration {
        let is_protected = || {
            let opens = self.opens(ino);
            opens.is_ok_and(|opens| opens.holds(EXCLUSIVE))
        };
        match self.options.cache {
            Cache::Loose => self.options.attribute_time,
            Cache::Strict if is_protected() => self.options.attribute_time,
            Cache::Strict | Cache::None => UNPROTECTED,
        }
    }

    /// Time for which the kernel may use names.
    pub(crate) fn name_time(&self) -> Duration {
        match self.options.cache {
            Cache::Loose => self.options.attribute_time,
            Cache::Strict | Cache::None => UNPROTECTED,
        }
    }

    /// Reads the target of a symbolic link.
    pub(crate) async fn read_link(&self, ino: u64) -> Answer<Vec<u8>> {
        let target = self.share.read_link(&self.path(ino)?).await;
        target
            .map(String::into_bytes)
            .map_err(|error| errno(&error))
    }

    /// Queries the space of the volume of an inode.
    pub(crate) async fn space(&self, ino: u64) -> Answer<Space> {
        let path = self.path(ino).or_else(|_| self.path(crate::inodes::ROOT))?;
        let volume = self.share.volume_of(&path).await;
        let volume = volume.map_err(|error| errno(&error))?;
        let block = u32::try_from(volume.block).unwrap_or(0).max(512);
        let blocks = |bytes: u64| (bytes / u64::from(block)).min(BLOCKS_MAX);
        Ok(Space {
            total: blocks(volume.total),
            free: blocks(volume.free),
            available: blocks(volume.available),
            block,
        })
    }

    /// Returns an open file.
    pub(crate) fn file(&self, handle: FileHandle) -> Answer<Arc<OpenFile>> {
        self.files.of(handle)
    }
}

/// Whether a file was not changed for some time.
fn is_quiet(node: &Node) -> bool {
    let changed = node.metadata.written.max(node.metadata.changed);
    let since = SystemTime::now().duration_since(changed);
    since.is_ok_and(|since| since >= QUIET)
}

/// The reply to a lookup of a name that does not exist, while a lease protects that.
fn missing(leased: Option<Leased>) -> Found {
    let epoch = SystemTime::UNIX_EPOCH;
    let attributes = FileAttr {
        // The kernel takes this number for a file that does not exist.
        ino: INodeNo(0),
        size: 0,
        blocks: 0,
        atime: epoch,
        mtime: epoch,
        ctime: epoch,
        crtime: epoch,
        kind: FileType::RegularFile,
        perm: 0,
        nlink: 0,
        uid: 0,
        gid: 0,
        rdev: 0,
        blksize: 0,
        flags: 0,
    };
    Found {
        attributes,
        generation: Generation(0),
        time: UNPROTECTED,
        leased,
        leased_time: LEASED,
        is_alone: false,
    }
}

/// Lets metadata of the server show held data. While the lease is exclusive, the known length is
/// right: only this mount changes the file.
fn show_held(node: &mut Node, opens: &Opens) {
    let (size, written) = opens.held.shown();
    let is_exclusive = opens.holds(EXCLUSIVE) || !opens.held.is_empty();
    if let Some(size) = size.filter(|_| is_exclusive) {
        node.metadata.size = size;
    }
    if let Some(written) = written {
        node.metadata.written = node.metadata.written.max(written);
        node.metadata.changed = node.metadata.changed.max(written);
    }
    show_changes(&mut node.metadata, &opens.held.changes());
}
