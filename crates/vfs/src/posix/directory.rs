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
use crate::errno::{Context, status};
use crate::{Effort, Step, Stop};

/// How often a step is tried again that lost a race with somebody who renames.
pub(super) const RACES: usize = 64;

/// What every resolution keeps to.
pub(super) const BENEATH: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS);

/// For whom an operation runs, and how far it may go.
#[derive(Clone, Copy)]
pub(super) struct Run<'a> {
    pub(super) token: &'a Arc<Token>,
    pub(super) effort: Effort,
}

/// A directory that is open for names (O_PATH).
#[derive(Clone, Debug)]
pub(super) struct Directory {
    pub(super) fd: Arc<OwnedFd>,
    pub(super) key: FileKey,
}

/// A directory that a path led to.
pub(super) struct Parent {
    pub(super) directory: Arc<Directory>,
    pub(super) stat: Stat,
    /// Its path as the file system spells it.
    pub(super) path: SharePath,
}

/// What a name in a directory stands for.
pub(super) struct Entry {
    /// The name as the file system spells it.
    pub(super) name: String,
    /// The file, or the link, for its metadata (O_PATH).
    pub(super) fd: OwnedFd,
    pub(super) stat: Stat,
}

/// The directories that are parents of open files: one descriptor each, whatever the number of
/// files.
#[derive(Debug, Default)]
pub(super) struct Directories {
    shared: Mutex<HashMap<(FileKey, u64), Weak<Directory>>>,
}

impl Directories {
    /// Puts a directory in, or finds the one that is there already.
    pub(super) fn share(&self, fd: OwnedFd, stat: &Stat) -> Arc<Directory> {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (stat.key(), stat.mount());
        if let Some(directory) = shared.get(&key).and_then(Weak::upgrade) {
            return directory;
        }
        // Grown to its capacity: what nobody uses goes first.
        if shared.len() == shared.capacity() {
            shared.retain(|_, directory| directory.strong_count() > 0);
        }
        let directory = Arc::new(Directory {
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

/// Opens a name in a directory. A link is not followed: it opens with O_PATH only.
pub(super) fn open_name(
    directory: &Directory,
    name: &str,
    flags: OFlags,
    effort: Effort,
) -> Step<Result<OwnedFd, Errno>> {
    let rules = BENEATH | ResolveFlags::NO_SYMLINKS;
    resolve(&directory.fd, name, flags | OFlags::NOFOLLOW, rules, effort)
}

/// Resolves a path; again where somebody renames directories of it at the same time.
pub(super) fn resolve(
    from: &OwnedFd,
    path: &str,
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
