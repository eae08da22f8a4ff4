//! The state that the thread of a share and its opens have in common.

use std::collections::{HashSet, VecDeque};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use proto::file::FileKey;
use proto::token::Token;
use ring::{Fanotify, FileHandle, file_handle};
use rustix::io::Errno;

use super::super::directory::Directory;
use super::super::scan::is_empty;
use super::super::stat::{self, as_server};
use super::tree::{MarkTarget, Tree};
use crate::identity;

/// Directories of a share that have a mark, at most. The kernel keeps about 1 KiB for each, and so
/// does the tree.
pub const DIRECTORIES_MAX: usize = 65_536;

/// What the thread and the others share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) queue: Fanotify,
    pub(super) state: Mutex<State>,
    pub(super) has_trees: Arc<AtomicBool>,
    /// Trees that are being marked, and were not read to their end.
    pub(super) trees_being_marked: AtomicUsize,
    /// Whether it was said that there is no room.
    pub(super) has_warned_full: AtomicBool,
    pub(super) must_end: AtomicBool,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) tree: Tree,
    pub(super) jobs: VecDeque<Job>,
    /// Whether something may be in the tree that nobody watches.
    pub(super) must_sweep: bool,
    /// Directories in which this process changed names while trees were being marked.
    pub(super) changed_by_us: HashSet<FileKey>,
    /// Whether there was no room for a directory, or no mark: then changes are lost.
    pub(super) is_lost: bool,
}

/// What the thread is to do beside reading events.
#[derive(Debug)]
pub(super) enum Job {
    /// Mark all directories below one that is watched since then.
    MarkTree(FileHandle, Duration),
    /// Tell what is in a directory that this process made: somebody was faster.
    Report(FileHandle),
}

impl Shared {
    pub(super) fn watch(
        &self,
        slot: u64,
        directory: &Directory,
        parent: Option<&Directory>,
        (is_tree, token): (bool, &Arc<Token>),
    ) -> io::Result<()> {
        let since = now();
        let own = mark_target(directory)?;
        let parent = parent.map(mark_target).transpose()?;
        let handle = own.handle.clone();
        // Into the tree first: an event of a directory that is not in it is nobody's.
        {
            let mut state = lock(&self.state);
            let is_covered = state.tree.is_covered(&handle);
            if !self.has_capacity(&mut state) {
                return Ok(());
            }
            state.tree.watch(slot, own, parent.clone(), is_tree);
            if is_tree && !is_covered {
                state.jobs.push_back(Job::MarkTree(handle.clone(), since));
                self.trees_being_marked.fetch_add(1, Ordering::Relaxed);
            }
            self.has_trees
                .store(state.tree.has_trees(), Ordering::Relaxed);
        }
        let marked = self.mark(&directory.fd, token);
        if let Some(parent) = parent {
            // Tells that the directory is removed. Not to be had where it may not be read.
            let _ = self.mark(&parent.fd, token);
        }
        self.queue.wake();
        marked
    }

    pub(super) fn unwatch(&self, slot: u64) {
        let mut state = lock(&self.state);
        if state.tree.unwatch(slot) {
            state.must_sweep = true;
            self.has_trees
                .store(state.tree.has_trees(), Ordering::Relaxed);
            self.queue.wake();
        }
    }

    pub(super) fn created(
        &self,
        parent: FileKey,
        name: &str,
        fd: &OwnedFd,
        token: &Arc<Token>,
    ) -> io::Result<()> {
        let handle = file_handle(fd.as_fd())?;
        let key = stat::stat(fd)?.key();
        {
            let mut state = lock(&self.state);
            let Some(parent) = state.tree.handle(parent).cloned() else {
                return Ok(());
            };
            if !state.tree.is_covered(&parent) || !self.has_capacity(&mut state) {
                return Ok(());
            }
            state.tree.attach(&handle, key, &parent, name);
        }
        self.mark(fd, token)?;
        if !is_empty(fd).unwrap_or(true) {
            lock(&self.state).jobs.push_back(Job::Report(handle));
            self.queue.wake();
        }
        Ok(())
    }

    /// Whether one more directory may be marked; else everybody
    /// is told that changes are lost.
    pub(super) fn has_capacity(&self, state: &mut State) -> bool {
        if state.tree.len() < DIRECTORIES_MAX {
            return true;
        }
        self.warn_full("the limit of the share");
        state.is_lost = true;
        false
    }

    pub(super) fn warn_full(&self, limit: &str) {
        if !self.has_warned_full.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                directories = DIRECTORIES_MAX,
                limit,
                "too many directories are watched: some changes are not seen"
            );
        }
    }

    /// Sets the mark of a directory; as the server where the user may not read it.
    pub(super) fn mark(&self, fd: &OwnedFd, token: &Arc<Token>) -> io::Result<()> {
        let marked = match self.queue.mark(fd.as_fd()) {
            Err(error) if is(&error, Errno::ACCESS) => {
                privileged(token, || self.queue.mark(fd.as_fd()))
            }
            result => result,
        };
        if let Err(error) = &marked
            && is(error, Errno::NOSPC)
        {
            self.warn_full("fs.fanotify.max_user_marks");
            lock(&self.state).is_lost = true;
        }
        marked
    }
}

/// The place of an open directory in the tree.
pub(super) fn mark_target(directory: &Directory) -> io::Result<MarkTarget> {
    Ok(MarkTarget {
        handle: file_handle(directory.fd.as_fd())?,
        key: directory.key,
        fd: directory.fd.clone(),
    })
}

/// Does something as the server itself, where it can become others.
pub(super) fn privileged<T>(
    token: &Arc<Token>,
    run: impl FnOnce() -> io::Result<T>,
) -> io::Result<T> {
    if !identity::switches() {
        return run();
    }
    let as_errno = |error: io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
    Ok(as_server(token, || run().map_err(as_errno))?)
}

pub(super) fn is(error: &io::Error, errno: Errno) -> bool {
    error.raw_os_error() == Some(errno.raw_os_error())
}

/// The time of day, as the times of files have it.
pub(super) fn now() -> Duration {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
