//! Walking paths beneath the root of the share.
//!
//! A path is only ever resolved by `openat2` from the root with RESOLVE_BENEATH, or as a single
//! name within a directory that is open. Links inside the share are followed; a link that leads
//! out of it, or an absolute one, leads nowhere.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use proto::file::{FileKey, FileKind};
use proto::path::SharePath;
use proto::token::Token;
use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;
use wire::Status;

use super::Posix;
use super::stat::{Stat, kind_of, stat};
use crate::errno::{Context, status};
use crate::{Effort, Step, Stop};

/// How often a step is tried again that lost a race with somebody who renames.
pub(super) const RACES: usize = 64;

/// What every resolution keeps to.
const BENEATH: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS);

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
    fn share(&self, fd: OwnedFd, stat: &Stat) -> Arc<Directory> {
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

impl Posix {
    /// Opens a path beneath the root, links followed.
    pub(super) fn beneath(
        &self,
        path: &SharePath,
        flags: OFlags,
        effort: Effort,
    ) -> Step<Result<OwnedFd, Errno>> {
        let path = if path.is_root() { "." } else { path.as_str() };
        resolve(&self.root.fd, path, flags, BENEATH, effort)
    }

    /// The directory of a path, found without regard to case.
    pub(super) fn directory(&self, path: &SharePath, run: Run<'_>) -> Step<Parent> {
        if path.is_root() {
            let stat = stat(&self.root.fd).map_err(|errno| status(errno, Context::Walk))?;
            let directory = self.root.clone();
            return Ok(Parent {
                directory,
                stat,
                path: SharePath::root(),
            });
        }
        match self.beneath(path, OFlags::PATH | OFlags::DIRECTORY, run.effort)? {
            Ok(fd) => self.parent(fd, path.clone()),
            Err(Errno::NOENT) => self.spelled_directory(path, run),
            Err(errno) => Err(status(errno, Context::Walk).into()),
        }
    }

    /// The directory of a path that is not spelled as the file system spells it, name by name.
    fn spelled_directory(&self, path: &SharePath, run: Run<'_>) -> Step<Parent> {
        let mut at = self.directory(&SharePath::root(), run)?;
        for name in path.components() {
            let entry = self.entry(&at.directory, name, run)?;
            let entry = entry.ok_or(Status::OBJECT_PATH_NOT_FOUND)?;
            let path = at.path.join(&entry.name);
            at = match kind_of(&entry.stat) {
                FileKind::Directory => self.parent(entry.fd, path)?,
                FileKind::Link => self.linked_directory(path, run.effort)?,
                FileKind::File | FileKind::Special => {
                    return Err(Status::OBJECT_PATH_NOT_FOUND.into());
                }
            };
        }
        Ok(at)
    }

    fn linked_directory(&self, path: SharePath, effort: Effort) -> Step<Parent> {
        let opened = self.beneath(&path, OFlags::PATH | OFlags::DIRECTORY, effort)?;
        self.parent(opened.map_err(|errno| status(errno, Context::Walk))?, path)
    }

    fn parent(&self, fd: OwnedFd, path: SharePath) -> Step<Parent> {
        let stat = stat(&fd).map_err(|errno| status(errno, Context::Walk))?;
        let directory = self.directories.share(fd, &stat);
        Ok(Parent {
            directory,
            stat,
            path,
        })
    }

    /// What a name in a directory stands for, the exact name before one that differs in case.
    /// Links are not followed.
    pub(super) fn entry(
        &self,
        directory: &Directory,
        name: &str,
        run: Run<'_>,
    ) -> Step<Option<Entry>> {
        match open_name(directory, name, OFlags::PATH, run.effort) {
            Ok(Ok(fd)) => entry_of(name.to_owned(), fd).map(Some),
            Ok(Err(Errno::NOENT)) => self.other_spelling(directory, name, run),
            // Not known to the kernel's cache. Perhaps the index knows that it is not there.
            Err(Stop::WouldBlock) => self.other_spelling(directory, name, run),
            Ok(Err(errno)) => Err(status(errno, Context::Open).into()),
            Err(stop) => Err(stop),
        }
    }

    /// What a name that differs in case stands for.
    fn other_spelling(
        &self,
        directory: &Directory,
        name: &str,
        run: Run<'_>,
    ) -> Step<Option<Entry>> {
        let Some(spelled) = self.index.spell(directory, name, run)? else {
            return Ok(None);
        };
        match open_name(directory, &spelled, OFlags::PATH, run.effort)? {
            Ok(fd) => entry_of(spelled, fd).map(Some),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(status(errno, Context::Open).into()),
        }
    }
}

fn entry_of(name: String, fd: OwnedFd) -> Step<Entry> {
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
fn resolve(
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
