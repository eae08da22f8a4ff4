//! Keeps writes past the page cache and writes into it apart, file by file.
//!
//! The kernel throws the pages of a direct write out once it is done. It cannot where somebody
//! writes to one of them meanwhile, or to another that it keeps in one piece with it: then old
//! bytes stay in memory, and the next flush fails with EIO. A client that sends a file has many
//! writes under way, of which the last is seldom aligned and goes through the page cache. So those
//! wait until the direct ones are done, and none of those begins meanwhile: it goes through the
//! page cache, too.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};

use proto::file::FileKey;

use crate::{Effort, Stop};

/// The writers of one file.
#[derive(Debug, Default)]
pub(crate) struct WriteGate {
    writers: Mutex<Writers>,
    is_free: Condvar,
}

#[derive(Debug, Default)]
struct Writers {
    direct: usize,
    /// Under way or waiting.
    cached: usize,
}

/// Leave to write past the page cache, until it is dropped.
#[derive(Debug)]
pub struct DirectWriteGuard(Arc<WriteGate>);

/// Leave to write into it.
#[derive(Debug)]
pub(crate) struct CachedWriteGuard<'a>(&'a WriteGate);

impl WriteGate {
    fn writers(&self) -> MutexGuard<'_, Writers> {
        self.writers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// To write past the page cache; `None` where somebody writes into it.
    pub(crate) fn direct(self: &Arc<Self>) -> Option<DirectWriteGuard> {
        let mut writers = self.writers();
        if writers.cached > 0 {
            return None;
        }
        writers.direct += 1;
        Some(DirectWriteGuard(Arc::clone(self)))
    }

    /// To write into the page cache, once those past it are done.
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

/// The gates of all files that are open.
#[derive(Debug, Default)]
pub(crate) struct WriteGates {
    by_file: Mutex<HashMap<FileKey, Weak<WriteGate>>>,
}

impl WriteGates {
    /// The gate of a file, which all its opens share.
    pub(crate) fn of(&self, key: FileKey) -> Arc<WriteGate> {
        let mut by_file = self.by_file.lock().unwrap_or_else(PoisonError::into_inner);
        // What was still being written to when it was closed was not let go of.
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

    /// Lets go of what nobody has open.
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
    use super::*;

    const KEY: FileKey = FileKey { volume: 1, file: 2 };

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
