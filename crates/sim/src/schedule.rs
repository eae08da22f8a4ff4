//! The clock, and what happens when.

use std::collections::BTreeMap;
use std::time::Duration;

use proto::effect::{Instant, Now};
use vfs::memory::EPOCH;
use wire::FileTime;

/// What happens at a time, in the order in which it was planned where the times are alike.
#[derive(Debug)]
pub(crate) struct Schedule<E> {
    now: Instant,
    planned: BTreeMap<(Instant, u64), E>,
    count: u64,
}

impl<E> Schedule<E> {
    pub(crate) fn new() -> Self {
        Self {
            now: Instant::default(),
            planned: BTreeMap::new(),
            count: 0,
        }
    }

    /// The time as the core wants it.
    pub(crate) fn now(&self) -> Now {
        let units = u64::try_from(self.now.0.as_nanos() / 100).unwrap_or(u64::MAX);
        Now {
            instant: self.now,
            wall: FileTime(EPOCH.0 + units),
        }
    }

    pub(crate) fn after(&mut self, delay: Duration, event: E) {
        self.at(self.now.after(delay), event);
    }

    /// Plans an event; what is past happens at once.
    pub(crate) fn at(&mut self, at: Instant, event: E) {
        self.count += 1;
        self.planned.insert((at.max(self.now), self.count), event);
    }

    /// The next event. The clock goes on to its time.
    pub(crate) fn next(&mut self) -> Option<E> {
        let ((at, _), event) = self.planned.pop_first()?;
        assert!(at >= self.now, "time does not go back");
        self.now = at;
        Some(event)
    }
}
