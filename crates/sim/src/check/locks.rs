//! Byte-range locks: no two opens hold conflicting locks, and no open reads or writes bytes that
//! another open has locked. \[MS-FSA\] 2.1.4.10, 2.1.5.8

use std::collections::BTreeMap;

use proto::time::Instant;

use crate::check::contents::Span;
use crate::check::opens::Holder;
use crate::check::{Check, ensure};

/// Offset and length in bytes.
pub(crate) type Place = (u64, u64);

/// A lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lock {
    pub(crate) place: Place,
    pub(crate) is_exclusive: bool,
}

/// A lock that is certainly held: its LOCK was answered, and the client has sent no request that
/// may end it.
#[derive(Clone, Copy, Debug)]
struct Held {
    holder: Holder,
    key: u64,
    lock: Lock,
    /// Tick at which the client received the answer.
    since: u64,
    /// Time until which the lock is certainly held, once its session has lost its connection.
    until: Option<Instant>,
}

/// All locks that are certainly held.
#[derive(Debug, Default)]
pub(crate) struct Locks {
    held: Vec<Held>,
    /// Tick at which an open last unlocked a range: an earlier lock of it may have ended.
    unlocked: BTreeMap<(Holder, Place), u64>,
}

impl Locks {
    /// The server granted a LOCK.
    pub(crate) fn locked(&mut self, holder: Holder, key: u64, lock: Lock, span: Span) -> Check {
        let unlocked = self.unlocked.get(&(holder, lock.place));
        if unlocked.is_some_and(|at| *at > span.start) {
            return Ok(());
        }
        for other in self.held.iter().filter(|held| held.key == key) {
            let is_own = other.holder == holder;
            let both_share = !other.lock.is_exclusive && !lock.is_exclusive;
            // Locks of one open may overlap each other.
            let is_fine = is_own || both_share || !overlap(other.lock.place, lock.place);
            ensure(is_fine, || {
                format!("{holder:?} was granted {lock:?} beside {other:?}")
            })?;
        }
        self.held.push(Held {
            holder,
            key,
            lock,
            since: span.end.unwrap_or(u64::MAX),
            until: None,
        });
        Ok(())
    }

    /// The client sends an UNLOCK.
    pub(crate) fn unlocking(&mut self, holder: Holder, place: Place, now: u64) {
        self.unlocked.insert((holder, place), now);
        self.held
            .retain(|held| held.holder != holder || held.lock.place != place);
    }

    /// The client sends a CLOSE, or another request that ends the open.
    pub(crate) fn closing(&mut self, holder: Holder) {
        self.held.retain(|held| held.holder != holder);
    }

    /// The session of an open has lost its last connection; its locks are held until this time.
    pub(crate) fn disconnected(&mut self, holder: Holder, until: Instant) {
        let own = self.held.iter_mut().filter(|held| held.holder == holder);
        own.for_each(|held| held.until = held.until.or(Some(until)));
    }

    /// The client has reconnected to an open, and its locks last as long as it.
    pub(crate) fn reconnected(&mut self, holder: Holder) {
        let own = self.held.iter_mut().filter(|held| held.holder == holder);
        own.for_each(|held| held.until = None);
    }

    /// Forgets locks of disconnected opens after their deadline.
    pub(crate) fn expire(&mut self, now: Instant) {
        self.held
            .retain(|held| held.until.is_none_or(|until| until > now));
    }

    /// A READ or a WRITE succeeded: no lock forbade it during the whole request.
    pub(crate) fn accessed(
        &self,
        holder: Holder,
        key: u64,
        place: Place,
        is_write: bool,
        span: Span,
    ) -> Check {
        for held in self.held.iter().filter(|held| held.key == key) {
            let forbids = match held.lock.is_exclusive {
                true => held.holder != holder,
                false => is_write,
            };
            let is_in_the_way = forbids && overlap(held.lock.place, place);
            ensure(!is_in_the_way || held.since > span.start, || {
                format!("{holder:?} had at {place:?}, write {is_write}, in spite of {held:?}")
            })?;
        }
        Ok(())
    }
}

/// Returns whether two ranges have a byte in common, or an empty one is within the other.
fn overlap(one: Place, other: Place) -> bool {
    let end = |(offset, length): Place| offset + length;
    match (one.1, other.1) {
        (0, 0) => false,
        (0, _) => other.0 < one.0 && one.0 < end(other),
        (_, 0) => one.0 < other.0 && other.0 < end(one),
        _ => one.0 < end(other) && other.0 < end(one),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Holder = (0, 0);
    const OTHER: Holder = (1, 0);

    fn lock(place: Place, is_exclusive: bool) -> Lock {
        Lock {
            place,
            is_exclusive,
        }
    }

    fn span(start: u64, end: u64) -> Span {
        let end = Some(end);
        Span { start, end }
    }

    #[test]
    fn a_conflict_is_found_until_the_client_ends_it() {
        let mut locks = Locks::default();
        assert_eq!(locks.locked(ONE, 1, lock((0, 4), true), span(1, 2)), Ok(()));
        assert_eq!(
            locks.locked(OTHER, 1, lock((4, 4), true), span(1, 3)),
            Ok(())
        );
        assert_eq!(
            locks.locked(OTHER, 2, lock((0, 4), true), span(1, 3)),
            Ok(())
        );
        assert!(
            locks
                .locked(OTHER, 1, lock((3, 1), false), span(3, 4))
                .is_err()
        );
        assert!(
            locks
                .locked(OTHER, 1, lock((2, 0), false), span(3, 4))
                .is_err()
        );
        assert_eq!(
            locks.locked(OTHER, 1, lock((0, 0), false), span(3, 4)),
            Ok(())
        );
        locks.unlocking(ONE, (0, 4), 5);
        assert_eq!(
            locks.locked(OTHER, 1, lock((3, 1), false), span(3, 6)),
            Ok(())
        );
        locks.closing(OTHER);
        assert_eq!(locks.locked(ONE, 1, lock((0, 9), true), span(6, 7)), Ok(()));
    }

    #[test]
    fn a_lock_that_may_be_unlocked_already_is_not_held() {
        let mut locks = Locks::default();
        locks.unlocking(ONE, (0, 4), 5);
        assert_eq!(locks.locked(ONE, 1, lock((0, 4), true), span(4, 6)), Ok(()));
        assert_eq!(
            locks.locked(OTHER, 1, lock((0, 4), true), span(4, 7)),
            Ok(())
        );
    }

    #[test]
    fn a_read_or_write_of_a_locked_range_is_found() {
        let mut locks = Locks::default();
        assert_eq!(locks.locked(ONE, 1, lock((0, 4), true), span(1, 2)), Ok(()));
        assert_eq!(locks.accessed(ONE, 1, (0, 4), true, span(3, 4)), Ok(()));
        assert!(locks.accessed(OTHER, 1, (3, 4), false, span(3, 4)).is_err());
        assert_eq!(locks.accessed(OTHER, 1, (4, 4), true, span(3, 4)), Ok(()));
        assert_eq!(locks.accessed(OTHER, 1, (3, 4), true, span(1, 4)), Ok(()));
        locks.closing(ONE);
        assert_eq!(
            locks.locked(ONE, 1, lock((0, 4), false), span(5, 6)),
            Ok(())
        );
        assert_eq!(locks.accessed(OTHER, 1, (0, 4), false, span(7, 8)), Ok(()));
        assert!(locks.accessed(ONE, 1, (0, 4), true, span(7, 8)).is_err());
    }
}
