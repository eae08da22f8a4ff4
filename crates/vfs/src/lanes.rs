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
pub(crate) struct Lane {
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
pub struct Turn(Arc<Lane>);

/// Leave to write into it.
#[derive(Debug)]
pub(crate) struct CachedTurn<'a>(&'a Lane);

impl Lane {
    fn writers(&self) -> MutexGuard<'_, Writers> {
        self.writers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// To write past the page cache; `None` where somebody writes into it.
    pub(crate) fn direct(self: &Arc<Self>) -> Option<Turn> {
        let mut writers = self.writers();
        if writers.cached > 0 {
            return None;
        }
        writers.direct += 1;
        Some(Turn(Arc::clone(self)))
    }

    /// To write into the page cache, once those past it are done.
    pub(crate) fn cached(&self, effort: Effort) -> Result<CachedTurn<'_>, Stop> {
        let mut writers = self.writers();
        if writers.direct > 0 && effort == Effort::Cached {
            return Err(Stop::WouldBlock);
        }
        writers.cached += 1;
        let is_busy = |writers: &mut Writers| writers.direct > 0;
        let waited = self.is_free.wait_while(writers, is_busy);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
        Ok(CachedTurn(self))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.writers().direct -= 1;
        self.0.is_free.notify_all();
    }
}

impl Drop for CachedTurn<'_> {
    fn drop(&mut self) {
        self.0.writers().cached -= 1;
    }
}

/// The lanes of all files that are open.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    by_file: Mutex<HashMap<FileKey, Weak<Lane>>>,
}

impl Lanes {
    /// The lane of a file, which all its opens share.
    pub(crate) fn of(&self, key: FileKey) -> Arc<Lane> {
        let mut by_file = self.by_file.lock().unwrap_or_else(PoisonError::into_inner);
        // What was still being written to when it was closed was not let go of.
        if by_file.len() == by_file.capacity() {
            by_file.retain(|_, lane| lane.strong_count() > 0);
        }
        let known = by_file.entry(key).or_default();
        known.upgrade().unwrap_or_else(|| {
            let lane = Arc::new(Lane::default());
            *known = Arc::downgrade(&lane);
            lane
        })
    }

    /// Lets go of what nobody has open.
    pub(crate) fn forget(&self, key: FileKey) {
        let mut by_file = self.by_file.lock().unwrap_or_else(PoisonError::into_inner);
        if by_file
            .get(&key)
            .is_some_and(|lane| lane.strong_count() == 0)
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
    fn cached_writes_wait_for_direct_ones_and_keep_more_of_them_out() {
        let lanes = Lanes::default();
        let (one, same) = (lanes.of(KEY), lanes.of(KEY));
        let turn = one.direct().expect("nobody else writes");
        let second = same.direct().expect("direct writes do not mind each other");
        assert_eq!(same.cached(Effort::Cached).err(), Some(Stop::WouldBlock));
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| drop(same.cached(Effort::Blocking)));
            while one.writers().cached == 0 {
                std::thread::yield_now();
            }
            assert!(one.direct().is_none());
            drop((turn, second));
            waiter.join().expect("it gets its turn");
        });
        let cached = one.cached(Effort::Cached).expect("nobody else writes");
        assert!(same.direct().is_none());
        drop(cached);
        assert!(same.direct().is_some());
    }

    #[test]
    fn a_lane_goes_with_the_last_open() {
        let lanes = Lanes::default();
        let lane = lanes.of(KEY);
        lanes.forget(KEY);
        assert!(Arc::ptr_eq(&lane, &lanes.of(KEY)));
        drop(lane);
        lanes.forget(KEY);
        assert!(lanes.by_file.lock().expect("sound").is_empty());
    }
}
