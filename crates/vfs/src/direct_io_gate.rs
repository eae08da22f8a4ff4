//! Excludes direct writes and writes into the page cache from each other, per file.
//!
//! After a direct write the kernel discards the pages of its range. It cannot discard a page that
//! another write changes at the same time, or that belongs to one folio with such a page. Stale
//! bytes then stay in memory, and the next flush fails with EIO.
//!
//! A client that uploads a file has many writes in flight, and the last one is usually not aligned,
//! so it goes through the page cache. That write waits for the direct writes to end. While it
//! waits, further writes do not start as direct writes; they go through the page cache as well.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};

use proto::file::FileKey;

use crate::{Effort, Stop};

/// The writes in progress of one file.
#[derive(Debug, Default)]
pub(crate) struct WriteGate {
    writers: Mutex<Writers>,
    is_free: Condvar,
}

#[derive(Debug, Default)]
struct Writers {
    direct: usize,
    /// Number of writes into the page cache, in progress or waiting.
    cached: usize,
}

/// Permission for one direct write (O_DIRECT) to a file. Several direct writes to a file may hold a
/// guard at the same time. Writes to the same file through the page cache wait until all guards are
/// dropped.
#[derive(Debug)]
pub struct DirectWriteGuard(Arc<WriteGate>);

/// Permission for one write into the page cache, until it is dropped. It excludes direct writes.
#[derive(Debug)]
pub(crate) struct CachedWriteGuard<'a>(&'a WriteGate);

impl WriteGate {
    fn writers(&self) -> MutexGuard<'_, Writers> {
        self.writers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a direct write. `None` while a write into the page cache is in progress or waiting.
    pub(crate) fn direct(self: &Arc<Self>) -> Option<DirectWriteGuard> {
        let mut writers = self.writers();
        if writers.cached > 0 {
            return None;
        }
        writers.direct += 1;
        Some(DirectWriteGuard(Arc::clone(self)))
    }

    /// Starts a write into the page cache; waits for the direct writes to end. With
    /// [`Effort::Cached`] it fails instead of waiting.
    pub(crate) fn cached(&self, effort: Effort) -> Result<CachedWriteGuard<'_>, Stop> {
        let mut writers = self.writers();
        if writers.direct > 0 && effort == Effort::Cached {
            return Err(Stop::WouldBlock);
        }
        writers.cached += 1;
        let is_busy = |writers: &mut Writers| writers.direct > 0;
        let waited = self.is_free.wait_while(writers, is_busy);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
        Ok(CachedWriteGuard(self))
    }
}

impl Drop for DirectWriteGuard {
    fn drop(&mut self) {
        self.0.writers().direct -= 1;
        self.0.is_free.notify_all();
    }
}

impl Drop for CachedWriteGuard<'_> {
    fn drop(&mut self) {
        self.0.writers().cached -= 1;
    }
}

/// The write gates of all open files.
#[derive(Debug, Default)]
pub(crate) struct WriteGates {
    by_file: Mutex<HashMap<FileKey, Weak<WriteGate>>>,
}

impl WriteGates {
    /// The gate of a file. All opens of the file share it.
    pub(crate) fn of(&self, key: FileKey) -> Arc<WriteGate> {
        let mut by_file = self.by_file.lock().unwrap_or_else(PoisonError::into_inner);
        // A file that was closed during a write may still have an entry, without a gate.
        if by_file.len() == by_file.capacity() {
            by_file.retain(|_, gate| gate.strong_count() > 0);
        }
        let known = by_file.entry(key).or_default();
        known.upgrade().unwrap_or_else(|| {
            let gate = Arc::new(WriteGate::default());
            *known = Arc::downgrade(&gate);
            gate
        })
    }

    /// Removes the gate of a file without opens.
    pub(crate) fn forget(&self, key: FileKey) {
        let mut by_file = self.by_file.lock().unwrap_or_else(PoisonError::into_inner);
        if by_file
            .get(&key)
            .is_some_and(|gate| gate.strong_count() == 0)
        {
            by_file.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use proto::file::StreamId;

    use super::*;

    const KEY: FileKey = FileKey {
        volume: 1,
        file: 2,
        stream: StreamId::DATA,
    };

    #[test]
    fn cached_writes_wait_for_direct_writes_and_exclude_new_ones() {
        let gates = WriteGates::default();
        let (one, same) = (gates.of(KEY), gates.of(KEY));
        let guard = one.direct().expect("no other write is in progress");
        let second = same
            .direct()
            .expect("direct writes do not exclude each other");
        assert_eq!(same.cached(Effort::Cached).err(), Some(Stop::WouldBlock));
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| drop(same.cached(Effort::Blocking)));
            while one.writers().cached == 0 {
                std::thread::yield_now();
            }
            assert!(one.direct().is_none());
            drop((guard, second));
            waiter.join().expect("the cached write continues");
        });
        let cached = one
            .cached(Effort::Cached)
            .expect("no other write is in progress");
        assert!(same.direct().is_none());
        drop(cached);
        assert!(same.direct().is_some());
    }

    #[test]
    fn a_gate_is_removed_with_the_last_open() {
        let gates = WriteGates::default();
        let gate = gates.of(KEY);
        gates.forget(KEY);
        assert!(Arc::ptr_eq(&gate, &gates.of(KEY)));
        drop(gate);
        gates.forget(KEY);
        assert!(gates.by_file.lock().expect("not poisoned").is_empty());
    }
}
