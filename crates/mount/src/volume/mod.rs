//! The file system: the operations of the kernel as operations of the client library.

mod data;
mod entries;
mod open;
mod set;

pub(crate) use set::Wanted;

use std::ffi::OsStr;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use fuser::{Errno, FileAttr, FileHandle, Generation, Notifier};
use smbeam_client::Share;

use crate::attributes::{Node, UNPROTECTED};
use crate::directory::OpenDirectory;
use crate::errno::errno;
use crate::handles::{Handles, lock};
use crate::inodes::Inodes;
use crate::names::{join, to_server};
use crate::opens::{OpenFile, Opens};
use crate::options::{Cache, MountOptions};

/// A mounted share.
pub(crate) struct Volume {
    pub(crate) share: Share,
    pub(crate) options: MountOptions,
    pub(crate) inodes: Mutex<Inodes>,
    pub(crate) files: Handles<OpenFile>,
    pub(crate) directories: Handles<OpenDirectory>,
    /// Set when the kernel has mounted the file system.
    pub(crate) notifier: OnceLock<Notifier>,
}

/// The reply to a lookup, and to a request that makes a file.
pub(crate) struct Found {
    pub(crate) attributes: FileAttr,
    pub(crate) generation: Generation,
    /// Time for which the kernel may use name and attributes.
    pub(crate) time: Duration,
}

/// The reply to an operation of the kernel.
pub(crate) type Answer<T> = Result<T, Errno>;

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
    pub(crate) fn new(share: Share, base: &str, options: MountOptions) -> Arc<Self> {
        Arc::new(Self {
            share,
            options,
            inodes: Mutex::new(Inodes::new(base)),
            files: Handles::default(),
            directories: Handles::default(),
            notifier: OnceLock::new(),
        })
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
        let bound = lock(&self.inodes).bind((parent, name), node.identity())?;
        Ok(Found {
            attributes: node.attributes(bound.ino, &self.options),
            generation: Generation(bound.generation),
            time: self.name_time(),
        })
    }

    pub(crate) fn forget(&self, ino: u64, count: u64) {
        lock(&self.inodes).forget(ino, count);
    }

    /// Queries the attributes of an inode. Without a name, an open of the file answers.
    pub(crate) async fn attributes(&self, ino: u64) -> Answer<(FileAttr, Duration)> {
        let node = self.node_of(ino).await?;
        Ok((node.attributes(ino, &self.options), self.attribute_time()))
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

    /// Time for which the kernel may use attributes.
    pub(crate) fn attribute_time(&self) -> Duration {
        match self.options.cache {
            Cache::Loose => self.options.attribute_time,
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
