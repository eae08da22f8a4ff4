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
mod shared;
mod thread;
mod tree;
mod watcher;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use proto::file::FileKey;
use proto::token::Token;
use ring::Fanotify;

use self::shared::{Shared, lock, privileged};
use self::watcher::Watcher;
use super::directory::Directory;
use super::file::OpenFile;
use crate::Listener;

pub use self::shared::DIRECTORIES_MAX;

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
