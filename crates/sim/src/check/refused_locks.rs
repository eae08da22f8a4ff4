//! Refused locks of POSIX opens: another open held, or may have held, a lock in the way.
//!
//! Of a lock it is known from when to when it may be held: from the request to the response that
//! ends it. A POSIX open replaces its locks in a range, and an unlock ends any part of them, so
//! that a refusal beside a part that was unlocked is wrong. All refusals are examined at the end of
//! the run, because a client may receive its response after others have seen the effect.

use crate::check::contents::Span;
use crate::check::locks::{Lock, Place, overlap, without};
use crate::check::opens::Holder;
use crate::check::{Check, ensure};

/// A lock that may be held.
#[derive(Clone, Copy, Debug)]
struct Attempt {
    holder: Holder,
    key: u64,
    lock: Lock,
    is_posix: bool,
    /// The end is the tick after which it is certainly not held; `None` while it may be.
    span: Span,
}

#[derive(Debug)]
struct Refusal {
    holder: Holder,
    key: u64,
    lock: Lock,
    span: Span,
}

/// All locks that clients requested in a run, and the refused ones.
#[derive(Debug, Default)]
pub(crate) struct RefusedLocks {
    attempts: Vec<Attempt>,
    refusals: Vec<Refusal>,
}

impl RefusedLocks {
    /// A client requests a lock of a file.
    pub(crate) fn locking(
        &mut self,
        holder: Holder,
        (key, is_posix): (u64, bool),
        lock: Lock,
        start: u64,
    ) {
        let span = Span { start, end: None };
        self.attempts.push(Attempt {
            holder,
            key,
            lock,
            is_posix,
            span,
        });
    }

    /// A request for a lock has failed.
    pub(crate) fn failed(&mut self, holder: Holder, lock: Lock, span: Span) {
        if let Some(index) = self.newest(holder, lock) {
            self.attempts[index].span.end = span.end;
        }
    }

    /// Returns the index of the last request of an open for a lock, if that may be held.
    fn newest(&self, holder: Holder, lock: Lock) -> Option<usize> {
        let attempts = self.attempts.iter().enumerate();
        let is_it = |it: &Attempt| it.holder == holder && it.lock == lock && it.span.end.is_none();
        let newest = attempts.filter(|(_, it)| is_it(it));
        let newest = newest.max_by_key(|(_, it)| it.span.start);
        newest.map(|(index, _)| index)
    }

    /// A request of a POSIX open that does not wait was refused because of a lock.
    pub(crate) fn refused(&mut self, holder: Holder, key: u64, lock: Lock, span: Span) {
        self.refusals.push(Refusal {
            holder,
            key,
            lock,
            span,
        });
    }

    /// A POSIX open was granted a lock, which replaces its earlier ones in the range.
    pub(crate) fn granted(&mut self, holder: Holder, lock: Lock, end: u64) {
        let granted = self.newest(holder, lock);
        let granted = granted.map(|index| self.attempts.swap_remove(index));
        self.unlocked(holder, lock.place, end);
        self.attempts.extend(granted);
    }

    /// A POSIX open has unlocked a range.
    pub(crate) fn unlocked(&mut self, holder: Holder, place: Place, end: u64) {
        let mut rests = Vec::new();
        let open = |it: &&mut Attempt| it.holder == holder && it.is_posix && it.span.end.is_none();
        for attempt in self.attempts.iter_mut().filter(open) {
            if !overlap(attempt.lock.place, place) {
                continue;
            }
            rests.extend(without(attempt.lock.place, place).map(|place| Attempt {
                lock: Lock {
                    place,
                    ..attempt.lock
                },
                ..*attempt
            }));
            attempt.span.end = Some(end);
        }
        self.attempts.extend(rests);
    }

    /// An open was closed.
    pub(crate) fn closed(&mut self, holder: Holder, end: u64) {
        let own = self.attempts.iter_mut().filter(|it| it.holder == holder);
        own.for_each(|attempt| attempt.span.end = attempt.span.end.or(Some(end)));
    }

    /// Checks that every refusal has a reason. Returns the number of refusals.
    pub(crate) fn check(&self) -> Check<u64> {
        for refusal in &self.refusals {
            let has_reason = self.attempts.iter().any(|it| is_reason(it, refusal));
            ensure(has_reason, || {
                let of_file = self.attempts.iter().filter(|it| it.key == refusal.key);
                let near = of_file.filter(|it| overlap(it.lock.place, refusal.lock.place));
                let near: Vec<_> = near.collect();
                format!("a lock was refused without a reason: {refusal:?}, but {near:?}")
            })?;
        }
        Ok(self.refusals.len() as u64)
    }
}

fn is_reason(attempt: &Attempt, refusal: &Refusal) -> bool {
    let is_other = attempt.holder != refusal.holder && attempt.key == refusal.key;
    let excludes = attempt.lock.is_exclusive || refusal.lock.is_exclusive;
    let begins = refusal.span.end.is_none_or(|end| attempt.span.start <= end);
    let lasts = attempt.span.end.is_none_or(|end| end >= refusal.span.start);
    let overlaps = overlap(attempt.lock.place, refusal.lock.place);
    is_other && excludes && begins && lasts && overlaps
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Holder = (0, 0);
    const OTHER: Holder = (1, 0);

    fn lock(place: Place) -> Lock {
        Lock {
            place,
            is_exclusive: true,
        }
    }

    fn span(start: u64, end: u64) -> Span {
        let end = Some(end);
        Span { start, end }
    }

    /// A POSIX open locks bytes 0 to 10 and unlocks the middle.
    fn locks() -> RefusedLocks {
        let mut locks = RefusedLocks::default();
        locks.locking(ONE, (1, true), lock((0, 10)), 1);
        locks.granted(ONE, lock((0, 10)), 2);
        locks.unlocked(ONE, (4, 2), 12);
        locks
    }

    fn has_reason(mut locks: RefusedLocks, place: Place, span: Span) -> bool {
        locks.refused(OTHER, 1, lock(place), span);
        locks.check().is_ok()
    }

    #[test]
    fn an_unlocked_part_is_no_reason() {
        assert!(has_reason(locks(), (4, 2), span(3, 5)));
        assert!(has_reason(locks(), (4, 2), span(11, 15)));
        assert!(!has_reason(locks(), (4, 2), span(13, 15)));
        assert!(has_reason(locks(), (3, 1), span(13, 15)));
        assert!(has_reason(locks(), (6, 9), span(13, 15)));
        assert!(!has_reason(locks(), (10, 9), span(13, 15)));
    }

    #[test]
    fn a_closed_open_and_a_failed_request_are_no_reason() {
        let mut closed = locks();
        closed.closed(ONE, 20);
        assert!(!has_reason(closed, (0, 1), span(21, 22)));
        let mut failed = locks();
        failed.locking(ONE, (1, true), lock((20, 5)), 13);
        failed.failed(ONE, lock((20, 5)), span(13, 14));
        assert!(!has_reason(failed, (20, 5), span(15, 16)));
    }

    #[test]
    fn a_lock_of_the_same_open_is_no_reason() {
        let mut own = locks();
        own.refused(ONE, 1, lock((0, 1)), span(13, 15));
        assert!(own.check().is_err());
    }
}
