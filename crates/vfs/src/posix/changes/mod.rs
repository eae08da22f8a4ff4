//! What others than this server do to the folder, for clients that watch.
//!
//! Each directory that is watched has a mark (see [`ring::Fanotify`]), and so has each one below it
//! where all that is below counts. Marks need no privilege. One thread for each share that is
//! watched reads what the kernel tells, keeps the tree of marks, and tells the server.
//!
//! # No change is told twice
//!
//! What this process does the server's core reports by itself, better and sooner than the kernel.
//! Events say whether this process caused them: its own only serve to keep the tree right.
//!
//! # No change is lost, or it is said that some are
//!
//! A directory gets its mark first and is read then, so what comes into being in between is told,
//! if it was not read. What the kernel cannot keep in its queue, what does not fit in
//! [`DIRECTORIES_MAX`], and what changed in directories below one that is about to be watched while
//! there was no mark on them yet, is told as [`Lost`]: the client lists the directory.
//!
//! Where there is no fanotify - a kernel before 5.17, a sandbox - clients are told what happens
//! through the server, and the log says so once. inotify would be there, but could tell the
//! server's own changes from others' by guessing only. Nor does this see what other machines do to
//! a network file system, or what happens to the layers of overlayfs behind its back.
//!
//! [`Lost`]: proto::file::LocalEvent::Lost

mod events;
mod scan;
mod thread;
mod tree;

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

use self::thread::Watcher;
use self::tree::{MarkTarget, Tree};
use super::file::OpenFile;
use super::scan::is_empty;
use super::stat;
use super::stat::as_server;
use super::walk::Directory;
use crate::{Listener, identity};

/// Directories of a share that have a mark, at most. The kernel keeps about 1 KiB for each, and so
/// does the tree.
pub const DIRECTORIES_MAX: usize = 65_536;

/// What is watched in a share. Nothing runs before somebody watches.
#[derive(Debug, Default)]
pub(super) struct Changes {
    listener: Mutex<Option<EventListener>>,
    shared: Mutex<Started>,
    /// Whether there is anything to keep up to date.
    has_trees: Arc<AtomicBool>,
}

/// Whom to tell.
#[derive(Clone)]
struct EventListener(Listener);

impl std::fmt::Debug for EventListener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("EventListener")
    }
}

#[derive(Debug, Default)]
enum Started {
    #[default]
    No,
    /// There is no fanotify.
    Unavailable,
    Running(Arc<Shared>),
}

/// What the thread and the others share.
#[derive(Debug)]
struct Shared {
    queue: Fanotify,
    state: Mutex<State>,
    has_trees: Arc<AtomicBool>,
    /// Trees that are being marked, and were not read to their end.
    trees_being_marked: AtomicUsize,
    /// Whether it was said that there is no room.
    has_warned_full: AtomicBool,
    must_end: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    tree: Tree,
    jobs: VecDeque<Job>,
    /// Whether something may be in the tree that nobody watches.
    must_sweep: bool,
    /// Directories in which this process changed names while trees were being marked.
    changed_by_us: HashSet<FileKey>,
    /// Whether there was no room for a directory, or no mark: then changes are lost.
    is_lost: bool,
}

/// What the thread is to do beside reading events.
#[derive(Debug)]
enum Job {
    /// Mark all directories below one that is watched since then.
    MarkTree(FileHandle, Duration),
    /// Tell what is in a directory that this process made: somebody was faster.
    Report(FileHandle),
}

impl Changes {
    /// From now on this one is told.
    pub(super) fn listen(&self, listener: Listener) {
        *lock(&self.listener) = Some(EventListener(listener));
    }

    /// Begins to watch a directory through an open.
    pub(super) fn watch(&self, slot: u64, file: &OpenFile, is_tree: bool) {
        let Some(shared) = self.shared(&file.token) else {
            return;
        };
        let own = Directory {
            fd: file.fd.clone(),
            key: file.key,
        };
        let location = file.link.location();
        let parent = (!location.is_root()).then_some(&*location.parent);
        if let Err(error) = shared.watch(slot, &own, parent, (is_tree, &file.token)) {
            tracing::debug!(%error, "cannot watch a directory");
        }
    }

    /// The open is closed.
    pub(super) fn unwatch(&self, slot: u64) {
        if let Started::Running(shared) = &*lock(&self.shared) {
            shared.unwatch(slot);
        }
    }

    /// Directories that have a mark.
    pub(super) fn usage(&self) -> usize {
        match &*lock(&self.shared) {
            Started::Running(shared) => lock(&shared.state).tree.len(),
            Started::No | Started::Unavailable => 0,
        }
    }

    /// This process is about to change names in a directory.
    pub(super) fn will_change(&self, directory: FileKey) {
        if let Some(shared) = self.with_trees()
            && shared.trees_being_marked.load(Ordering::Relaxed) > 0
        {
            let mut state = lock(&shared.state);
            if state.changed_by_us.len() < DIRECTORIES_MAX {
                state.changed_by_us.insert(directory);
            }
        }
    }

    /// This process has made a directory. It gets its mark before anybody is told of it: what is
    /// in it later the kernel tells, and says whose it is.
    pub(super) fn created(&self, parent: FileKey, name: &str, fd: &OwnedFd, token: &Arc<Token>) {
        if let Some(shared) = self.with_trees()
            && let Err(error) = shared.created(parent, name, fd, token)
        {
            tracing::debug!(%error, "cannot watch a new directory");
        }
    }

    fn with_trees(&self) -> Option<Arc<Shared>> {
        if !self.has_trees.load(Ordering::Relaxed) {
            return None;
        }
        match &*lock(&self.shared) {
            Started::Running(shared) => Some(shared.clone()),
            Started::No | Started::Unavailable => None,
        }
    }

    /// What is shared with the thread, which starts with the first watch.
    fn shared(&self, token: &Arc<Token>) -> Option<Arc<Shared>> {
        let listener = lock(&self.listener).clone()?.0;
        let mut started = lock(&self.shared);
        if let Started::No = *started {
            *started = match self.start(listener, token) {
                Ok(shared) => Started::Running(shared),
                Err(error) => {
                    tracing::warn!(
                        %error,
                        "no fanotify: who watches is told what happens through the server alone"
                    );
                    Started::Unavailable
                }
            };
        }
        match &*started {
            Started::Running(shared) => Some(shared.clone()),
            Started::No | Started::Unavailable => None,
        }
    }

    fn start(&self, listener: Listener, token: &Arc<Token>) -> io::Result<Arc<Shared>> {
        // The kernel counts queues by the user who makes them.
        let shared = Arc::new(Shared {
            queue: privileged(token, Fanotify::new)?,
            state: Mutex::default(),
            has_trees: self.has_trees.clone(),
            trees_being_marked: AtomicUsize::new(0),
            has_warned_full: AtomicBool::new(false),
            must_end: AtomicBool::new(false),
        });
        let watcher = Watcher::new(shared.clone(), listener);
        std::thread::Builder::new()
            .name("changes".to_owned())
            .spawn(move || watcher.run())?;
        Ok(shared)
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        if let Started::Running(shared) = &*lock(&self.shared) {
            shared.must_end.store(true, Ordering::Relaxed);
            shared.queue.wake();
        }
    }
}

impl Shared {
    fn watch(
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

    fn unwatch(&self, slot: u64) {
        let mut state = lock(&self.state);
        if state.tree.unwatch(slot) {
            state.must_sweep = true;
            self.has_trees
                .store(state.tree.has_trees(), Ordering::Relaxed);
            self.queue.wake();
        }
    }

    fn created(
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
    fn has_capacity(&self, state: &mut State) -> bool {
        if state.tree.len() < DIRECTORIES_MAX {
            return true;
        }
        self.warn_full("the limit of the share");
        state.is_lost = true;
        false
    }

    fn warn_full(&self, limit: &str) {
        if !self.has_warned_full.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                directories = DIRECTORIES_MAX,
                limit,
                "too many directories are watched: some changes are not seen"
            );
        }
    }

    /// Sets the mark of a directory; as the server where the user may not read it.
    fn mark(&self, fd: &OwnedFd, token: &Arc<Token>) -> io::Result<()> {
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
fn mark_target(directory: &Directory) -> io::Result<MarkTarget> {
    Ok(MarkTarget {
        handle: file_handle(directory.fd.as_fd())?,
        key: directory.key,
        fd: directory.fd.clone(),
    })
}

/// Does something as the server itself, where it can become others.
fn privileged<T>(token: &Arc<Token>, run: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    if !identity::switches() {
        return run();
    }
    let as_errno = |error: io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
    Ok(as_server(token, || run().map_err(as_errno))?)
}

fn is(error: &io::Error, errno: Errno) -> bool {
    error.raw_os_error() == Some(errno.raw_os_error())
}

/// The time of day, as the times of files have it.
fn now() -> Duration {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
