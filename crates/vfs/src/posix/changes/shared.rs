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
use wire::file_name::NameMapping;

use super::super::directory::Directory;
use super::super::scan::is_empty;
use super::super::stat::{self, as_server};
use super::tree::{MarkTarget, Tree};
use crate::identity;

/// Maximum number of directories of a share that the server watches for changes by other processes,
/// so that clients get notifications. Beyond the limit the server reports changes as lost. Each
/// directory uses about 1 KiB in the kernel, and as much in the process.
pub const DIRECTORIES_MAX: usize = 65_536;

/// The state that the thread and the opens share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) queue: Fanotify,
    /// The mapping to the names that clients see.
    pub(super) mapping: NameMapping,
    pub(super) state: Mutex<State>,
    pub(super) has_trees: Arc<AtomicBool>,
    /// Number of trees with directories that have no marks yet.
    pub(super) trees_being_marked: AtomicUsize,
    /// Whether the log already has the warning about the limit.
    pub(super) has_warned_full: AtomicBool,
    pub(super) must_end: AtomicBool,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) tree: Tree,
    pub(super) jobs: VecDeque<Job>,
    /// Whether the tree may contain directories without a watch.
    pub(super) must_sweep: bool,
    /// Directories in which this process changed names while trees were being marked.
    pub(super) changed_by_us: HashSet<FileKey>,
    /// Whether a directory has no mark because of a limit, so that changes are lost.
    pub(super) is_lost: bool,
}

/// A task for the thread, besides the kernel's events.
#[derive(Debug)]
pub(super) enum Job {
    /// Mark all descendants of a directory; the watch started at this time.
    MarkTree(FileHandle, Duration),
    /// Report the contents of a directory that this process created: another process was faster.
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
        // Add the directory to the tree first: an event for an unknown directory is discarded.
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
            // The parent's events include the removal of the directory. The mark fails if the
            // parent is not readable.
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

    /// Whether a further directory can have a mark. If not, changes are reported as lost.
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
                "too many watched directories: some changes are not reported"
            );
        }
    }

    /// Marks a directory; as the server if the user may not read it.
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

/// The handle, key and descriptor of an open directory.
pub(super) fn mark_target(directory: &Directory) -> io::Result<MarkTarget> {
    Ok(MarkTarget {
        handle: file_handle(directory.fd.as_fd())?,
        key: directory.key,
        fd: directory.fd.clone(),
    })
}

/// Runs a function as the server itself, if the process can switch users.
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

/// The present time of the system clock, as a duration since 1970-01-01 UTC.
pub(super) fn now() -> Duration {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
