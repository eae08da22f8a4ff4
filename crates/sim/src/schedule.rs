//! The clock, and what happens when.

use std::collections::BTreeMap;
use std::time::Duration;

use proto::time::{Instant, Now};
use vfs::memory::EPOCH;
use wire::FileTime;

use crate::check::{Check, ensure};

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

    /// The next event of a run, of which `steps` were before it. There has to be one, and whatever
    /// goes on for more than `most` goes round in a circle.
    pub(crate) fn step(&mut self, steps: &mut u64, most: u64) -> Check<E> {
        let event = self.next();
        let event = event.ok_or("nothing happens any more, and not all is done")?;
        *steps += 1;
        ensure(*steps < most, || "it never ends".into())?;
        Ok(event)
    }

    /// Once nothing goes wrong any more all has to come to an end.
    pub(crate) fn check_deadline(&self, deadline: Option<Instant>) -> Check {
        let is_late = deadline.is_some_and(|deadline| self.now > deadline);
        ensure(!is_late, || {
            "nothing goes wrong any more, and not all is done".into()
        })
    }
}

/// When an event is planned that has to come in time. One that comes too early does no harm.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Timer(Option<Instant>);

impl Timer {
    /// When to plan the event, for it to come by `wanted`; `None` where it comes anyway.
    pub(crate) fn set(&mut self, wanted: Option<Instant>) -> Option<Instant> {
        let at = wanted.filter(|at| self.0.is_none_or(|set| set > *at))?;
        self.0 = Some(at);
        Some(at)
    }

    /// The event has come.
    pub(crate) fn clear(&mut self) {
        self.0 = None;
    }
}
