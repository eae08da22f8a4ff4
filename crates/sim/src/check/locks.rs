//! Byte-range locks: no two opens hold conflicting locks, and no open reads or writes bytes that
//! another open has locked. \[MS-FSA\] 2.1.4.10, 2.1.5.8 The locks of POSIX opens are those of
//! fcntl(2): an open replaces its own, unlocks parts of them, and other POSIX opens read and write
//! in spite of them.

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
    /// Whether the open has the SMB3 POSIX extensions: its lock is one of fcntl(2), and forbids
    /// other such opens neither to read nor to write.
    is_posix: bool,
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
    pub(crate) fn locked(
        &mut self,
        holder: Holder,
        (key, is_posix): (u64, bool),
        lock: Lock,
        span: Span,
    ) -> Check {
        let unlocked = self.unlocked.get(&(holder, lock.place));
        if unlocked.is_some_and(|at| *at > span.start) {
            return Ok(());
        }
        for other in self.held.iter().filter(|held| held.key == key) {
            let is_own = other.holder == holder;
            let both_share = !other.lock.is_exclusive && !lock.is_exclusive;
            // An empty range between two parts of the locks of a POSIX open is in neither.
            let is_between = other.is_posix && lock.place.1 == 0;
            // Locks of one open may overlap each other.
            let is_apart = is_between || !overlap(other.lock.place, lock.place);
            let is_fine = is_own || both_share || is_apart;
            ensure(is_fine, || {
                format!("{holder:?} was granted {lock:?} beside {other:?}")
            })?;
        }
        self.held.push(Held {
            holder,
            key,
            lock,
            is_posix,
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

    /// The client sends a LOCK of a POSIX open. The open keeps a lock in the range, whether the
    /// server grants it or not, but perhaps only a shared one.
    pub(crate) fn replacing(&mut self, holder: Holder, lock: Lock) {
        let mut weakened = Vec::new();
        for held in self.held.iter().filter(|held| held.holder == holder) {
            if held.lock.is_exclusive && !lock.is_exclusive {
                weakened.extend(common(held.lock.place, lock.place).map(|place| Held {
                    lock: Lock { place, ..lock },
                    ..*held
                }));
            }
        }
        if !lock.is_exclusive {
            self.cut(holder, lock.place, |held| held.lock.is_exclusive);
        }
        self.held.extend(weakened);
    }

    /// The client sends an UNLOCK of a POSIX open, which ends any part of its locks.
    pub(crate) fn unlocking_part(&mut self, holder: Holder, place: Place) {
        self.cut(holder, place, |_| true);
    }

    fn cut(&mut self, holder: Holder, place: Place, is_meant: impl Fn(&Held) -> bool) {
        let mut rests = Vec::new();
        self.held.retain(|held| {
            let is_cut = held.holder == holder && is_meant(held);
            if !is_cut || common(held.lock.place, place).is_none() {
                return true;
            }
            rests.extend(without(held.lock.place, place).map(|place| Held {
                lock: Lock { place, ..held.lock },
                ..*held
            }));
            false
        });
        self.held.extend(rests);
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
        (key, is_posix): (u64, bool),
        place: Place,
        is_write: bool,
        span: Span,
    ) -> Check {
        for held in self.held.iter().filter(|held| held.key == key) {
            let forbids = match held.lock.is_exclusive {
                _ if is_posix && (held.is_posix || held.holder == holder) => false,
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

/// Returns the bytes that two ranges have in common.
fn common(one: Place, other: Place) -> Option<Place> {
    let start = one.0.max(other.0);
    let end = (one.0 + one.1).min(other.0 + other.1);
    (start < end).then(|| (start, end - start))
}

/// Returns the parts of a range before and after another one that overlaps it.
pub(crate) fn without(one: Place, other: Place) -> impl Iterator<Item = Place> {
    let end = |(offset, length): Place| offset + length;
    let before = (one.0, other.0.saturating_sub(one.0));
    let after = (end(other), end(one).saturating_sub(end(other)));
    [before, after].into_iter().filter(|part| part.1 > 0)
}

/// Returns whether two ranges have a byte in common, or an empty one is within the other.
pub(crate) fn overlap(one: Place, other: Place) -> bool {
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
        assert_eq!(
            locks.locked(ONE, (1, false), lock((0, 4), true), span(1, 2)),
            Ok(())
        );
        assert_eq!(
            locks.locked(OTHER, (1, false), lock((4, 4), true), span(1, 3)),
            Ok(())
        );
        assert_eq!(
            locks.locked(OTHER, (2, false), lock((0, 4), true), span(1, 3)),
            Ok(())
        );
        assert!(
            locks
                .locked(OTHER, (1, false), lock((3, 1), false), span(3, 4))
                .is_err()
        );
        assert!(
            locks
                .locked(OTHER, (1, false), lock((2, 0), false), span(3, 4))
                .is_err()
        );
        assert_eq!(
            locks.locked(OTHER, (1, false), lock((0, 0), false), span(3, 4)),
            Ok(())
        );
        locks.unlocking(ONE, (0, 4), 5);
        assert_eq!(
            locks.locked(OTHER, (1, false), lock((3, 1), false), span(3, 6)),
            Ok(())
        );
        locks.closing(OTHER);
        assert_eq!(
            locks.locked(ONE, (1, false), lock((0, 9), true), span(6, 7)),
            Ok(())
        );
    }

    #[test]
    fn a_lock_that_may_be_unlocked_already_is_not_held() {
        let mut locks = Locks::default();
        locks.unlocking(ONE, (0, 4), 5);
        assert_eq!(
            locks.locked(ONE, (1, false), lock((0, 4), true), span(4, 6)),
            Ok(())
        );
        assert_eq!(
            locks.locked(OTHER, (1, false), lock((0, 4), true), span(4, 7)),
            Ok(())
        );
    }

    #[test]
    fn a_read_or_write_of_a_locked_range_is_found() {
        let mut locks = Locks::default();
        assert_eq!(
            locks.locked(ONE, (1, false), lock((0, 4), true), span(1, 2)),
            Ok(())
        );
        assert_eq!(
            locks.accessed(ONE, (1, false), (0, 4), true, span(3, 4)),
            Ok(())
        );
        assert!(
            locks
                .accessed(OTHER, (1, false), (3, 4), false, span(3, 4))
                .is_err()
        );
        assert_eq!(
            locks.accessed(OTHER, (1, false), (4, 4), true, span(3, 4)),
            Ok(())
        );
        assert_eq!(
            locks.accessed(OTHER, (1, false), (3, 4), true, span(1, 4)),
            Ok(())
        );
        locks.closing(ONE);
        assert_eq!(
            locks.locked(ONE, (1, false), lock((0, 4), false), span(5, 6)),
            Ok(())
        );
        assert_eq!(
            locks.accessed(OTHER, (1, false), (0, 4), false, span(7, 8)),
            Ok(())
        );
        assert!(
            locks
                .accessed(ONE, (1, false), (0, 4), true, span(7, 8))
                .is_err()
        );
    }

    #[test]
    fn a_posix_open_replaces_its_locks() {
        let mut locks = Locks::default();
        let posix = (1, true);
        assert_eq!(
            locks.locked(ONE, posix, lock((0, 9), true), span(1, 2)),
            Ok(())
        );
        locks.replacing(ONE, lock((3, 3), false));
        assert!(
            locks
                .locked(OTHER, posix, lock((4, 1), true), span(3, 4))
                .is_err()
        );
        assert_eq!(
            locks.locked(OTHER, posix, lock((4, 1), false), span(3, 4)),
            Ok(())
        );
        assert!(
            locks
                .locked(OTHER, posix, lock((2, 2), false), span(3, 4))
                .is_err()
        );
        assert!(
            locks
                .locked(OTHER, posix, lock((6, 1), false), span(3, 4))
                .is_err()
        );
        locks.unlocking_part(ONE, (7, 1));
        assert_eq!(
            locks.locked(OTHER, posix, lock((7, 1), true), span(5, 6)),
            Ok(())
        );
        assert!(
            locks
                .locked(OTHER, posix, lock((8, 1), false), span(5, 6))
                .is_err()
        );
    }

    #[test]
    fn locks_of_posix_opens_forbid_other_opens_to_read() {
        let mut locks = Locks::default();
        assert_eq!(
            locks.locked(ONE, (1, true), lock((0, 4), true), span(1, 2)),
            Ok(())
        );
        assert_eq!(
            locks.accessed(OTHER, (1, true), (0, 4), true, span(3, 4)),
            Ok(())
        );
        assert!(
            locks
                .accessed(OTHER, (1, false), (0, 4), false, span(3, 4))
                .is_err()
        );
        assert_eq!(
            locks.accessed(ONE, (1, true), (0, 4), true, span(3, 4)),
            Ok(())
        );
    }
}
