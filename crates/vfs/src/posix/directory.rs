//! Open directories, and the resolution of a path or a name from one of them.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use proto::file::FileKey;
use proto::path::SharePath;
use proto::token::Token;
use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;

use super::stat::{Stat, stat};
use super::volume::Volume;
use crate::errno::{Context, status};
use crate::{Effort, Step, Stop};

/// Maximum number of attempts of a step that races with renames by others.
pub(super) const RACES: usize = 64;

/// The rules of every resolution.
pub(super) const BENEATH: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS);

/// The credentials of an operation, its root, and whether it may block.
#[derive(Clone, Copy)]
pub(super) struct Run<'a> {
    /// The credentials of the thread.
    pub(super) token: &'a Arc<Token>,
    /// The user: descriptors decide about its access.
    pub(super) user: &'a Arc<Token>,
    /// The root of the share, from which paths are resolved.
    pub(super) root: &'a Arc<Directory>,
    pub(super) effort: Effort,
    /// Whether names are exact and links are not followed: an open of the SMB3 POSIX extensions.
    pub(super) is_exact: bool,
}

/// A directory that is open for the lookup of names (O_PATH).
#[derive(Clone, Debug)]
pub(super) struct Directory {
    pub(super) fd: Arc<OwnedFd>,
    pub(super) key: FileKey,
    /// The file system of the directory itself. Its entries may be on others.
    pub(super) volume: Arc<Volume>,
}

/// The directory that a path leads to.
pub(super) struct Parent {
    pub(super) directory: Arc<Directory>,
    pub(super) stat: Stat,
    /// Its path for clients, as spelled by the file system.
    pub(super) path: SharePath,
}

/// An entry of a directory, with its file.
pub(super) struct Entry {
    /// Name of the entry for clients, as spelled by the file system.
    pub(super) name: String,
    /// The file, or the link itself, for its metadata (O_PATH).
    pub(super) fd: OwnedFd,
    pub(super) stat: Stat,
}

/// The parent directories of open files. Each has one descriptor, shared by all its files.
#[derive(Debug, Default)]
pub(super) struct Directories {
    shared: Mutex<HashMap<(FileKey, u64), Weak<Directory>>>,
}

impl Directories {
    /// Adds a directory, or returns the existing one.
    pub(super) fn share(
        &self,
        fd: OwnedFd,
        stat: &Stat,
        volume: impl FnOnce(&OwnedFd) -> Arc<Volume>,
    ) -> Arc<Directory> {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (stat.key(), stat.mount());
        if let Some(directory) = shared.get(&key).and_then(Weak::upgrade) {
            return directory;
        }
        // Before the table grows, remove the directories without open files.
        if shared.len() == shared.capacity() {
            shared.retain(|_, directory| directory.strong_count() > 0);
        }
        let directory = Arc::new(Directory {
            volume: volume(&fd),
            fd: Arc::new(fd),
            key: stat.key(),
        });
        shared.insert(key, Arc::downgrade(&directory));
        directory
    }
}

pub(super) fn entry_of(name: String, fd: OwnedFd) -> Step<Entry> {
    let stat = stat(&fd).map_err(|errno| status(errno, Context::Open))?;
    Ok(Entry { name, fd, stat })
}

/// Opens a name on the disk in a directory. A link is not followed; only O_PATH can open it.
pub(super) fn open_name(
    directory: &Directory,
    name: &[u8],
    flags: OFlags,
    effort: Effort,
) -> Step<Result<OwnedFd, Errno>> {
    let rules = BENEATH | ResolveFlags::NO_SYMLINKS;
    resolve(&directory.fd, name, flags | OFlags::NOFOLLOW, rules, effort)
}

/// Resolves a path on the disk; repeats the attempt if a concurrent rename disturbs it.
pub(super) fn resolve(
    from: &OwnedFd,
    path: &[u8],
    flags: OFlags,
    rules: ResolveFlags,
    effort: Effort,
) -> Step<Result<OwnedFd, Errno>> {
    let rules = match effort {
        Effort::Cached => rules | ResolveFlags::CACHED,
        Effort::Blocking => rules,
    };
    for _ in 0..RACES {
        match openat2(from, path, flags | OFlags::CLOEXEC, Mode::empty(), rules) {
            Err(Errno::AGAIN) if effort == Effort::Cached => return Err(Stop::WouldBlock),
            Err(Errno::AGAIN | Errno::INTR) => {}
            result => return Ok(result),
        }
    }
    Ok(Err(Errno::BUSY))
}
