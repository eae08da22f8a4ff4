//! The file system: the operations of the kernel as operations of the client library.

mod data;
mod entries;
mod lock;
mod open;
mod remove;
mod set;
mod space;
mod xattr;

pub(crate) use set::Wanted;
pub(crate) use space::Sought;

use std::ffi::OsStr;
use std::io;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use fuser::{FileAttr, FileHandle, Generation, Notifier};
use smbeam_client::{LeaseState, Share};

use crate::attributes::{Node, UNPROTECTED};
use crate::counters::{Counters, MountStatistics};
use crate::directory::OpenDirectory;
pub(crate) use crate::errno::Answer;
use crate::errno::errno;
use crate::handles::{Handles, lock};
use crate::inodes::Inodes;
use crate::invalidator::Invalidator;
use crate::names::{join, to_server};
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
    pub(crate) timer: Timer,
    pub(crate) counters: Counters,
}

/// The reply to a lookup, and to a request that makes a file.
pub(crate) struct Found {
    pub(crate) attributes: FileAttr,
    pub(crate) generation: Generation,
    /// Time for which the kernel may use name and attributes.
    pub(crate) time: Duration,
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
        let volume = Arc::new(Self {
            share,
            options,
            inodes: Mutex::new(Inodes::new(base)),
            files: Handles::default(),
            directories: Handles::default(),
            notifier: OnceLock::new(),
            invalidator,
            timer: Timer::new()?,
            counters: Counters::default(),
        });
        let dropping = Arc::downgrade(&volume);
        queue.start(move |ino| {
            if let Some(volume) = dropping.upgrade() {
                volume.drop_pages(ino);
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
        let name = to_server(name)?;
        let directory = lock(&self.inodes).path(parent)?;
        let path = join(&directory, &name);
        Ok((name, path))
    }

    /// Finds a file by its name.
    pub(crate) async fn lookup(&self, parent: u64, name: &OsStr) -> Answer<Found> {
        let (name, path) = self.named(parent, name)?;
        let node = self.node(&path).await?;
        self.found(parent, name, &node)
    }

    /// Queries a file by its path.
    pub(crate) async fn node(&self, path: &str) -> Answer<Node> {
        let metadata = self.share.symlink_metadata(path).await;
        let mut node = Node::new(metadata.map_err(|error| errno(&error))?);
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
        Ok(Found {
            attributes: node.attributes(bound.ino, &self.options),
            generation: Generation(bound.generation),
            time: self.name_time(),
        })
    }

    pub(crate) fn forget(&self, ino: u64, count: u64) {
        lock(&self.inodes).forget(ino, count);
    }

    /// Queries the attributes of an inode. Without a name, an open of the file answers. The kernel
    /// names a handle before a read(2) from its pages.
    pub(crate) async fn attributes(
        &self,
        ino: u64,
        handle: Option<FileHandle>,
    ) -> Answer<(FileAttr, Duration)> {
        let node = self.node_of(ino).await?;
        if handle.is_some() {
            self.before_read(&*self.opens(ino)?).await;
        }
        Ok((
            node.attributes(ino, &self.options),
            self.attribute_time(ino),
        ))
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
