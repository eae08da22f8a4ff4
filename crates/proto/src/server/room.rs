//! What the sessions that one connection made have at one time, all together: or they would
//! multiply what a session may have.
//!
//! It goes by who made the session, not by who carries it: that changes.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicUsize, Ordering};

use wire::Status;

/// What the sessions of one connection have.
#[derive(Clone, Debug, Default)]
pub(crate) struct Room {
    pub(crate) opens: Tally,
    pub(crate) pipes: Tally,
    pub(crate) watches: Tally,
}

/// How many of a kind there are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally(Arc<AtomicUsize>);

/// One of a kind, as long as it lives.
#[derive(Debug)]
pub(crate) struct Tallied(Tally);

impl Tally {
    /// One more, unless there are as many as may be.
    pub(crate) fn add(&self, limit: usize) -> Result<Tallied, Status> {
        let before = self.0.fetch_add(1, Ordering::Relaxed);
        // From here on it counts itself out, also where it must not be.
        let tallied = Tallied(self.clone());
        match before < limit {
            true => Ok(tallied),
            false => Err(Status::INSUFFICIENT_RESOURCES),
        }
    }
}

impl Drop for Tallied {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_goes_makes_room_and_who_is_refused_takes_none() {
        let tally = Tally::default();
        let first = tally.add(2).expect("there is room");
        let _second = tally.add(2).expect("there is room");
        for _ in 0..3 {
            assert_eq!(tally.add(2).err(), Some(Status::INSUFFICIENT_RESOURCES));
        }
        drop(first);
        let _third = tally.add(2).expect("one went");
        assert!(tally.add(2).is_err());
    }
}
