//! The clock and the schedule of events.

use std::collections::BTreeMap;
use std::time::Duration;

use proto::time::{Instant, Now};
use vfs::memory::EPOCH;
use wire::FileTime;

use crate::check::{Check, ensure};

/// Events in the order of their times; events of the same time in the order of their scheduling.
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

    /// Returns the time for a call into the core.
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

    /// Schedules an event. A time in the past means now.
    pub(crate) fn at(&mut self, at: Instant, event: E) {
        self.count += 1;
        self.planned.insert((at.max(self.now), self.count), event);
    }

    /// Removes and returns the next event, and advances the clock to its time.
    pub(crate) fn next(&mut self) -> Option<E> {
        let ((at, _), event) = self.planned.pop_first()?;
        assert!(at >= self.now, "time is monotonic");
        self.now = at;
        Some(event)
    }

    /// Returns the next event of a run, after `steps` others. Fails if no event is left, or if the
    /// run exceeds `most` events: then it never ends.
    pub(crate) fn step(&mut self, steps: &mut u64, most: u64) -> Check<E> {
        let event = self.next();
        let event = event.ok_or("no event is left, but not everything has finished")?;
        *steps += 1;
        ensure(*steps < most, || "the run never ends".into())?;
        Ok(event)
    }

    /// Fails if the final phase, without faults, exceeds its deadline.
    pub(crate) fn check_deadline(&self, deadline: Option<Instant>) -> Check {
        let is_late = deadline.is_some_and(|deadline| self.now > deadline);
        ensure(!is_late, || {
            "the faults have stopped, but not everything has finished in time".into()
        })
    }
}

/// The time of a scheduled timer event. An event that comes too early does no harm.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Timer(Option<Instant>);

impl Timer {
    /// Returns the time to schedule an event for, so that one comes by `wanted`; `None` if one does
    /// already.
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
