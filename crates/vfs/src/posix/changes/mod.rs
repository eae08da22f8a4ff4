//! Changes in the shared directory by other processes, for clients that watch directories.
//!
//! Each watched directory has a mark (see [`ring::Fanotify`]), and so has each directory below it
//! if the watch includes the tree. Marks need no privilege. Each share with watches has one thread,
//! which reads the kernel's events, maintains the tree of marks, and calls the server's listener.
//!
//! # No change is reported twice
//!
//! The core of the server reports the changes of this process itself, more precisely and earlier
//! than the kernel. An event says whether this process caused the change; such events only update
//! the tree.
//!
//! # Every change is reported, or its loss is
//!
//! A directory gets its mark first and is read afterward, so an entry created in between appears in
//! the events or in the contents. The following changes are reported as [`Lost`], and the client
//! lists the directory again: events that overflow the kernel's queue, changes in directories above
//! the limit [`DIRECTORIES_MAX`], and changes below a directory with a new tree watch before its
//! descendants have marks.
//!
//! Without fanotify (a kernel before 5.17, a sandbox) clients receive only the changes through the
//! server, and the log says so once. inotify would be available, but cannot distinguish changes by
//! the server. This module does not detect changes to a network file system by other computers, or
//! changes to the layers of overlayfs.
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
use wire::file_name::NameMapping;

use self::shared::{Shared, lock, privileged};
use self::watcher::Watcher;
use super::file::OpenFile;
use crate::Listener;

pub use self::shared::DIRECTORIES_MAX;

/// The watches of a share. The thread starts with the first watch.
#[derive(Debug)]
pub(super) struct Changes {
    /// The mapping to the names that clients see. All names in this module are such names.
    mapping: NameMapping,
    listener: Mutex<Option<EventListener>>,
    shared: Mutex<Started>,
    /// Whether any watch includes a tree, so that the tree must be maintained.
    has_trees: Arc<AtomicBool>,
}

/// A listener with a Debug implementation.
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
    /// The kernel does not provide fanotify.
    Unavailable,
    Running(Arc<Shared>),
}

impl Changes {
    /// No watches.
    pub(super) fn new(mapping: NameMapping) -> Self {
        Self {
            mapping,
            listener: Mutex::default(),
            shared: Mutex::default(),
            has_trees: Arc::default(),
        }
    }

    /// Sets the listener.
    pub(super) fn listen(&self, listener: Listener) {
        *lock(&self.listener) = Some(EventListener(listener));
    }

    /// Starts a watch of an open directory.
    pub(super) fn watch(&self, slot: u64, file: &OpenFile, is_tree: bool) {
        let Some(shared) = self.shared(&file.token) else {
            return;
        };
        let own = file.directory();
        let location = file.link.location();
        let parent = (!location.is_root()).then_some(&*location.parent);
        if let Err(error) = shared.watch(slot, &own, parent, (is_tree, &file.token)) {
            tracing::debug!(%error, "cannot watch a directory");
        }
    }

    /// Ends the watch of an open, at its close.
    pub(super) fn unwatch(&self, slot: u64) {
        if let Started::Running(shared) = &*lock(&self.shared) {
            shared.unwatch(slot);
        }
    }

    /// Number of directories with a mark.
    pub(super) fn usage(&self) -> usize {
        match &*lock(&self.shared) {
            Started::Running(shared) => lock(&shared.state).tree.len(),
            Started::No | Started::Unavailable => 0,
        }
    }

    /// Notes that this process is about to change names in a directory.
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

    /// Notes that this process has created a directory. The directory gets its mark before its
    /// creation is reported; the kernel reports later changes in it, with their origin.
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

    /// The state that the thread shares; the first call starts the thread.
    fn shared(&self, token: &Arc<Token>) -> Option<Arc<Shared>> {
        let listener = lock(&self.listener).clone()?.0;
        let mut started = lock(&self.shared);
        if let Started::No = *started {
            *started = match self.start(listener, token) {
                Ok(shared) => Started::Running(shared),
                Err(error) => {
                    tracing::warn!(
                        %error,
                        "no fanotify: clients receive changes by this server only"
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
        // The kernel counts fanotify queues per creating user.
        let shared = Arc::new(Shared {
            queue: privileged(token, Fanotify::new)?,
            mapping: self.mapping,
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
