//! An index of the names in directories, without regard to case.
//!
//! A client's name may differ in case from the name on disk. So a name that the kernel does not
//! find may still exist, and the server may create a file only if no name folds to the same form. A
//! scan of the directory for each lookup costs O(n) for each new file and O(n^2) for n files. Here
//! a directory is scanned once, and the kernel reports later changes.
//!
//! # Why inotify and not time stamps
//!
//! An index that is valid while the directory's times equal those of the scan must distrust times
//! younger than the file system's clock tick. In a directory with frequent creations they always
//! are. And after a change by itself, the server cannot exclude that another process changed the
//! directory in the same tick.
//!
//! The events of inotify are names, in order. They are queued before the system call that caused
//! them returns, in any process: after the queue is read, the index equals the directory at that
//! moment. So every lookup first reads the queue, and the server's own changes arrive in the same
//! way as those of others. The creation of a file in a directory of 100,000 files costs as much as
//! in a directory of 10 (`examples/metadata.rs`).
//!
//! The watch is set before the scan starts; events during the scan are applied after it. An
//! overflow of the queue drops all indexes. If the kernel does not see all changes (network and
//! FUSE file systems), or refuses a watch, there is no index and every lookup scans the directory.
//!
//! # Concurrent creations of the same name
//!
//! A creation holds a lock of its (directory, folded name). If two clients create `a` and `A` at
//! the same time, the second finds the file of the first. Other names in the directory do not wait,
//! except after a collision of the hash.
//!
//! # Bounds
//!
//! The index has at most [`DIRECTORIES_MAX`] directories and [`super::Options::index_bytes`] bytes
//! of names. It evicts the least recently used directory first. A directory that alone exceeds the
//! limit is scanned each time.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};

use proto::file::FileKey;
use proto::token::Token;
use wire::file_name::NameMapping;

use super::directory::{Directory, Run};
use super::inotify::{Change, Inotify, InotifyEvent};
use super::scan;
use super::spellings::Names;
use crate::{Effort, Step, Stop, fold};

/// Maximum number of directories of one share in the index of names, by which the server finds
/// names without regard to case. The server watches each of them for changes. Each watch uses about
/// 1 KiB in the kernel.
pub const DIRECTORIES_MAX: usize = 1024;
/// Maximum number of changes remembered during the scan of a directory.
const CHANGES_MAX: usize = 16_384;
/// Number of locks for creations.
const LOCKS: usize = 64;
/// Memory of a directory besides its names, in bytes.
const DIRECTORY_BYTES: usize = 512;

/// The index of a share.
#[derive(Debug)]
pub(super) struct Index {
    state: Mutex<State>,
    scanned: Condvar,
    create_locks: [Mutex<()>; LOCKS],
    seed: u64,
    mapping: NameMapping,
}

#[derive(Debug)]
struct State {
    /// `None` if the kernel provides no queue.
    watch: Option<Inotify>,
    entries: HashMap<FileKey, Entry>,
    watched: HashMap<i32, FileKey>,
    /// Ready entries by the time of their last use.
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
    /// A scan is in progress: the changes since its start, and whether some are missing.
    Scanning(Vec<Change>, bool),
    Ready(Names),
}

/// The knowledge of the index about a name.
enum Known {
    /// The name as spelled on disk; `None` if it does not exist.
    Spelled(Option<String>),
    /// Another thread is scanning the directory.
    Scanning,
    /// The directory is not in the index.
    Nothing,
}

impl Index {
    /// An empty index of at most `bytes_max` bytes. It has the names that clients see.
    pub(super) fn new(bytes_max: usize, mapping: NameMapping) -> Self {
        let seed = RandomState::new().hash_one(0);
        let state = State {
            watch: Inotify::new(mapping),
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
            mapping,
        }
    }

    /// The spelling of a name on disk: the exact name, else one that folds to the same form; `None`
    /// if there is none. Scans the directory if it is not in the index.
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

    /// Locks a name for its creation, from the last lookup until the name exists.
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

    /// Number of directories in the index, and the memory of their names in bytes.
    pub(super) fn usage(&self) -> (usize, usize) {
        let state = self.lock();
        (state.entries.len(), state.bytes)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Scans a directory for a name, and adds the directory to the index if its changes can be
    /// watched.
    fn scan(&self, directory: &Directory, name: &str, token: &Arc<Token>) -> Step<Option<String>> {
        let Some(opened) = scan::open(directory, token)? else {
            // The directory is not readable, and the kernel did not find the exact name.
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
        let (spelled, names) = match scan::scan(&opened, name, self.mapping, (bytes_max, self.seed))
        {
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
    /// Applies the kernel's pending events.
    fn catch_up(&mut self) {
        let events = self.watch.as_mut().map(Inotify::read).unwrap_or_default();
        for event in events {
            self.apply(event);
        }
        self.evict_to_limit();
    }

    fn apply(&mut self, event: InotifyEvent) {
        match event {
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

    /// The knowledge about a name in a directory; marks the directory as used.
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

    /// Starts to watch a directory before its scan. `None` if that is not possible, or another
    /// thread has started to scan it.
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

    /// Adds the result of a scan, with the changes since its start; or removes the entry if names
    /// or changes are missing.
    fn finish(&mut self, key: FileKey, descriptor: i32, names: Option<Names>) {
        self.catch_up();
        // If the directory was removed in between, another scan may have started.
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

    /// Evicts the least recently used entry. Returns false if there is none.
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

    /// Removes a directory from the index. Returns the descriptor of its watch.
    fn forget(&mut self, key: FileKey) -> Option<i32> {
        let entry = self.entries.remove(&key)?;
        if let Content::Ready(names) = &entry.content {
            self.bytes -= names.bytes() + DIRECTORY_BYTES;
            self.uses.remove(&entry.used);
        }
        Some(entry.descriptor)
    }

    /// Removes all directories after a loss of events. An entry with a scan in progress stays until
    /// the scan ends.
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
