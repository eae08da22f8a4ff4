//! Names without regard to case: which names a directory holds.
//!
//! A client's name may differ in case from the one on disk, so a name that the kernel does not
//! find may still be there, and a file may be made only where no name folds alike. Scanning the
//! directory each time costs O(n) for each new file and O(n^2) for a folder. Here a directory is
//! scanned once, and what changes later is told by the kernel.
//!
//! # Why inotify and not time stamps
//!
//! An index that is valid while the directory's times are those of the scan must distrust times
//! younger than the file system's clock ticks, which in a folder that files are being made in they
//! always are; and after a change of its own the server cannot tell that nobody else's fell into
//! the same moment. The events of inotify are names, in order, queued before the system call that
//! caused them returns, whichever process it was: after the queue has been read the index is what
//! the directory was at that moment. So every look-up begins with reading the queue, and the
//! server's own changes arrive the same way as anybody's. Making a file in a folder of 100,000
//! costs what it costs in a folder of 10 (`examples/metadata.rs`).
//!
//! The watch is set before the scan begins, and what is told meanwhile is applied after it. Where
//! the queue overflows every index is dropped. Where the kernel does not see all changes - on
//! network and FUSE file systems - or does not allow a watch, nothing is kept and every look-up
//! scans.
//!
//! # Two that make the same name
//!
//! A file is made under a lock of its (directory, folded name), so that of two clients who make
//! `a` and `A` at the same time one finds the other's file. Other names in the directory are
//! not held up, but for collisions of the hash.
//!
//! # Bounds
//!
//! [`DIRECTORIES_MAX`] directories and [`super::Options::index_bytes`] bytes of names; the one that
//! was not asked for the longest goes first. A directory that is too large by itself is scanned
//! each time.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};

use proto::file::FileKey;
use proto::token::Token;

use super::directory::{Directory, Run};
use super::inotify::{Change, Inotify, InotifyEvent};
use super::scan;
use super::spellings::Names;
use crate::{Effort, Step, Stop, fold};

/// Directories that are watched at most. The kernel keeps about 1 KiB for each.
pub const DIRECTORIES_MAX: usize = 1024;
/// Changes that are remembered while a directory is scanned, at most.
const CHANGES_MAX: usize = 16_384;
/// Locks for create_locks files.
const LOCKS: usize = 64;
/// Bytes that a directory costs beside its names.
const DIRECTORY_BYTES: usize = 512;

/// The index of a share.
#[derive(Debug)]
pub(super) struct Index {
    state: Mutex<State>,
    scanned: Condvar,
    create_locks: [Mutex<()>; LOCKS],
    seed: u64,
}

#[derive(Debug)]
struct State {
    /// `None` where the kernel gave none.
    watch: Option<Inotify>,
    entries: HashMap<FileKey, Entry>,
    watched: HashMap<i32, FileKey>,
    /// Entries by the time of their last use.
    uses: BTreeMap<u64, FileKey>,
    clock: u64,
    bytes: usize,
    bytes_max: usize,
    seed: u64,
}

#[derive(Debug)]
struct Entry {
    descriptor: i32,
    used: u64,
    content: Content,
}

#[derive(Debug)]
enum Content {
    /// Being scanned; what changed since, and whether some of it was missed.
    Scanning(Vec<Change>, bool),
    Ready(Names),
}

/// What the index says at once.
enum Known {
    /// The name as it is spelled, or that there is none.
    Spelled(Option<String>),
    /// Somebody scans the directory.
    Scanning,
    /// Nothing is known.
    Nothing,
}

impl Index {
    /// An empty index.
    pub(super) fn new(bytes_max: usize) -> Self {
        let seed = RandomState::new().hash_one(0);
        let state = State {
            watch: Inotify::new(),
            entries: HashMap::new(),
            watched: HashMap::new(),
            uses: BTreeMap::new(),
            clock: 0,
            bytes: 0,
            bytes_max,
            seed,
        };
        let create_locks = std::array::from_fn(|_| Mutex::new(()));
        Self {
            state: Mutex::new(state),
            scanned: Condvar::new(),
            create_locks,
            seed,
        }
    }

    /// How a directory spells a name, if it holds it or one that folds alike; the exact name
    /// first. Scans the directory where it is not known.
    pub(super) fn spell(
        &self,
        directory: &Directory,
        name: &str,
        run: Run<'_>,
    ) -> Step<Option<String>> {
        let mut state = self.lock();
        loop {
            state.catch_up();
            match state.known(directory.key, name) {
                Known::Spelled(spelled) => return Ok(spelled),
                Known::Scanning | Known::Nothing if run.effort == Effort::Cached => {
                    return Err(Stop::WouldBlock);
                }
                Known::Scanning => {
                    state = self
                        .scanned
                        .wait(state)
                        .unwrap_or_else(PoisonError::into_inner);
                }
                Known::Nothing => {
                    drop(state);
                    return self.scan(directory, name, run.token);
                }
            }
        }
    }

    /// Locks a name for create_locks it. Usage from the last look whether it is there until it is.
    pub(super) fn lock_name(
        &self,
        directory: &Directory,
        name: &str,
        effort: Effort,
    ) -> Step<MutexGuard<'_, ()>> {
        let hash = fold::fold_hash(name, self.seed ^ directory.key.file);
        let lock = &self.create_locks[hash as usize % LOCKS];
        match effort {
            Effort::Blocking => Ok(lock.lock().unwrap_or_else(PoisonError::into_inner)),
            Effort::Cached => match lock.try_lock() {
                Ok(guard) => Ok(guard),
                Err(TryLockError::Poisoned(error)) => Ok(error.into_inner()),
                Err(TryLockError::WouldBlock) => Err(Stop::WouldBlock),
            },
        }
    }

    /// Directories and bytes that are held.
    pub(super) fn usage(&self) -> (usize, usize) {
        let state = self.lock();
        (state.entries.len(), state.bytes)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Scans a directory for a name, and keeps what it holds if that can be kept right.
    fn scan(&self, directory: &Directory, name: &str, token: &Arc<Token>) -> Step<Option<String>> {
        let Some(opened) = scan::open(directory, token)? else {
            // Nobody may read it. The exact name was tried.
            return Ok(None);
        };
        let watched = match scan::reports_all_changes(&opened) {
            true => self.lock().begin(directory, token),
            false => None,
        };
        let bytes_max = if watched.is_some() {
            self.lock().bytes_max
        } else {
            0
        };
        let (spelled, names) = match scan::scan(&opened, name, bytes_max, self.seed) {
            Ok(scan) => (Ok(scan.spelled), scan.names),
            Err(status) => (Err(status), None),
        };
        if let Some(descriptor) = watched {
            self.lock().finish(directory.key, descriptor, names);
            self.scanned.notify_all();
        }
        Ok(spelled?)
    }
}

impl State {
    /// Reads what the kernel has to tell.
    fn catch_up(&mut self) {
        let told = self.watch.as_mut().map(Inotify::read).unwrap_or_default();
        for told in told {
            self.apply(told);
        }
        self.evict_to_limit();
    }

    fn apply(&mut self, told: InotifyEvent) {
        match told {
            InotifyEvent::Change(descriptor, change) => {
                if let Some(key) = self.watched.get(&descriptor).copied() {
                    self.change(key, change);
                }
            }
            InotifyEvent::WatchRemoved(descriptor) => {
                if let Some(key) = self.watched.remove(&descriptor) {
                    self.forget(key);
                }
            }
            InotifyEvent::Overflow => self.forget_all(),
        }
    }

    fn change(&mut self, key: FileKey, change: Change) {
        let Some(entry) = self.entries.get_mut(&key) else {
            return;
        };
        match &mut entry.content {
            Content::Scanning(changes, missed) => match changes.len() < CHANGES_MAX {
                true => changes.push(change),
                false => *missed = true,
            },
            Content::Ready(names) => {
                self.bytes -= names.bytes();
                names.apply(&change, self.seed);
                self.bytes += names.bytes();
            }
        }
    }

    /// What is known of a name in a directory.
    fn known(&mut self, key: FileKey, name: &str) -> Known {
        let (clock, seed) = (self.clock + 1, self.seed);
        let Some(entry) = self.entries.get_mut(&key) else {
            return Known::Nothing;
        };
        let Content::Ready(names) = &entry.content else {
            return Known::Scanning;
        };
        let spelled = names.spell(name, seed).map(str::to_owned);
        if entry.used != self.clock {
            self.uses.remove(&entry.used);
            entry.used = clock;
            self.uses.insert(clock, key);
            self.clock = clock;
        }
        Known::Spelled(spelled)
    }

    /// Watches a directory that is about to be scanned; `None` where that is not to be had, or
    /// somebody else was faster.
    fn begin(&mut self, directory: &Directory, token: &Arc<Token>) -> Option<i32> {
        while self.entries.len() >= DIRECTORIES_MAX && self.evict() {}
        let is_full = self.entries.len() >= DIRECTORIES_MAX;
        if is_full || self.entries.contains_key(&directory.key) {
            return None;
        }
        let descriptor = self.watch.as_ref()?.add(directory, token)?;
        let content = Content::Scanning(Vec::new(), false);
        self.entries.insert(
            directory.key,
            Entry {
                descriptor,
                used: 0,
                content,
            },
        );
        self.watched.insert(descriptor, directory.key);
        Some(descriptor)
    }

    /// Keeps what a scan found, with what changed since; or nothing, where it found too much.
    fn finish(&mut self, key: FileKey, descriptor: i32, names: Option<Names>) {
        self.catch_up();
        // Another scan may have begun, if the directory was gone in between.
        let is_ours = |entry: &&mut Entry| entry.descriptor == descriptor;
        let Some(entry) = self.entries.get_mut(&key).filter(is_ours) else {
            return;
        };
        let Content::Scanning(changes, missed) = &mut entry.content else {
            return;
        };
        let (changes, missed) = (std::mem::take(changes), *missed);
        let Some(mut names) = names.filter(|_| !missed) else {
            return self.drop_entry(key);
        };
        for change in &changes {
            names.apply(change, self.seed);
        }
        self.clock += 1;
        self.bytes += names.bytes() + DIRECTORY_BYTES;
        self.uses.insert(self.clock, key);
        entry.used = self.clock;
        entry.content = Content::Ready(names);
        self.evict_to_limit();
    }

    fn evict_to_limit(&mut self) {
        while self.bytes > self.bytes_max && self.evict() {}
    }

    /// Drops the entry that was not used for the longest; false where there is none.
    fn evict(&mut self) -> bool {
        let Some((_, key)) = self.uses.first_key_value() else {
            return false;
        };
        self.drop_entry(*key);
        true
    }

    fn drop_entry(&mut self, key: FileKey) {
        if let Some(descriptor) = self.forget(key) {
            self.watched.remove(&descriptor);
            if let Some(watch) = &self.watch {
                watch.remove(descriptor);
            }
        }
    }

    /// Forgets what is known of a directory; the descriptor of its watch. An entry that is being
    /// scanned stays until the scan is over.
    fn forget(&mut self, key: FileKey) -> Option<i32> {
        let entry = self.entries.remove(&key)?;
        if let Content::Ready(names) = &entry.content {
            self.bytes -= names.bytes() + DIRECTORY_BYTES;
            self.uses.remove(&entry.used);
        }
        Some(entry.descriptor)
    }

    /// Forgets everything, as changes were missed.
    fn forget_all(&mut self) {
        let ready: Vec<FileKey> = self.uses.values().copied().collect();
        for key in ready {
            self.drop_entry(key);
        }
        for entry in self.entries.values_mut() {
            if let Content::Scanning(_, missed) = &mut entry.content {
                *missed = true;
            }
        }
    }
}
