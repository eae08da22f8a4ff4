//! The counters of failed logins: a table with a limit.
//!
//! A full table forgets the counter that would be forgotten next anyway. To make the server forget
//! a counter, an attacker must therefore fill the table with counters of as many failures.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::key::Key;
use crate::client_address::ClientAddress;

/// Most counters. Each needs some 200 bytes.
pub(super) const COUNTERS_MAX: usize = 16_384;
/// Time after which one failed login of a counter is forgotten.
const FORGET_AFTER: Duration = Duration::from_secs(30);
/// Most failed logins of a counter. It limits the time until all are forgotten to 48 minutes.
const FAILURES_MAX: u32 = 96;

/// The refusal of all logins of a client to an account after failed logins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lockout {
    /// Failed logins of one counter after which its logins are refused; 0 disables the lockout.
    pub(crate) threshold: u32,
    /// Time for which they are refused. Failures that are older than this do not count.
    pub(crate) duration: Duration,
}

/// The failed logins of one key.
#[derive(Debug)]
pub(super) struct Counter {
    /// Time at which the last failure is forgotten. One is forgotten after each `FORGET_AFTER`.
    forgotten_at: Instant,
    /// Time at which the next login may be checked.
    pub(super) next: Instant,
    /// Failures that count for a lockout, and the time of the last one.
    of_lockout: (u32, Instant),
    locked_until: Option<Instant>,
    /// The addresses with failures, for a network only.
    pub(super) addresses: Vec<ClientAddress>,
}

impl Counter {
    fn new(now: Instant) -> Self {
        Self {
            forgotten_at: now,
            next: now,
            of_lockout: (0, now),
            locked_until: None,
            addresses: Vec::new(),
        }
    }

    /// Number of failures that are not forgotten.
    pub(super) fn failures(&self, now: Instant) -> u32 {
        let left = self.forgotten_at.saturating_duration_since(now);
        let failures = left.as_nanos().div_ceil(FORGET_AFTER.as_nanos());
        u32::try_from(failures).unwrap_or(FAILURES_MAX)
    }

    pub(super) fn add_failure(&mut self, now: Instant) {
        let at_most = now + FORGET_AFTER * FAILURES_MAX;
        self.forgotten_at = (self.forgotten_at.max(now) + FORGET_AFTER).min(at_most);
    }

    pub(super) fn remove_failure(&mut self, now: Instant) {
        let left = self.forgotten_at.saturating_duration_since(now);
        self.forgotten_at = now + left.saturating_sub(FORGET_AFTER);
    }

    /// Notes the address of a failure. Keeps this number of addresses at most.
    pub(super) fn note_address(&mut self, client: ClientAddress, limit: usize) {
        if self.addresses.len() < limit && !self.addresses.contains(&client) {
            self.addresses.push(client);
        }
    }

    /// Counts a failure for the lockout, and starts it at its threshold.
    pub(super) fn count_for(&mut self, lockout: Lockout, now: Instant) {
        let (failures, last) = self.of_lockout;
        let is_recent = now.saturating_duration_since(last) <= lockout.duration;
        let failures = if is_recent { failures + 1 } else { 1 };
        self.of_lockout = (failures, now);
        if lockout.threshold > 0 && failures >= lockout.threshold {
            self.of_lockout = (0, now);
            self.locked_until = Some(now + lockout.duration);
        }
    }

    pub(super) fn is_locked(&self, now: Instant) -> bool {
        self.locked_until.is_some_and(|until| now < until)
    }

    /// Time until which the counter matters.
    fn ends_at(&self) -> Instant {
        let locked_until = self.locked_until.unwrap_or(self.forgotten_at);
        self.forgotten_at.max(self.next).max(locked_until)
    }
}

/// The counters by key.
#[derive(Debug, Default)]
pub(super) struct Counters {
    counters: BTreeMap<Key, Counter>,
    by_end: BTreeSet<(Instant, Key)>,
}

impl Counters {
    pub(super) fn get(&self, key: Key) -> Option<&Counter> {
        self.counters.get(&key)
    }

    /// Changes a counter, which is new if the key has none.
    pub(super) fn change(&mut self, key: Key, now: Instant, change: impl FnOnce(&mut Counter)) {
        if !self.counters.contains_key(&key) && self.counters.len() >= COUNTERS_MAX {
            let (_, first) = self.by_end.first().expect("each counter has an end");
            self.remove(*first);
        }
        let counter = (self.counters.entry(key)).or_insert_with(|| Counter::new(now));
        self.by_end.remove(&(counter.ends_at(), key));
        change(counter);
        self.by_end.insert((counter.ends_at(), key));
    }

    pub(super) fn remove(&mut self, key: Key) {
        if let Some(counter) = self.counters.remove(&key) {
            self.by_end.remove(&(counter.ends_at(), key));
        }
    }

    /// Number of counters.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        assert_eq!(self.counters.len(), self.by_end.len());
        self.counters.len()
    }
}
