//! Locks: requests, waits and cancellations, and the checks of their responses.

use std::ops::Range;

use wire::{Header, Status};

use super::call::Call;
use super::{Client, Shared, State};
use crate::check::contents::{CELL, Span};
use crate::check::locks::{Lock, Place};
use crate::check::{Check, ensure};

/// Probability per mille that a client cancels a lock.
const IMPATIENCE: u16 = 20;
/// Positions of locks in half cells: some locks cover only parts of a READ or a WRITE.
const STARTS: u64 = 10;
/// Maximum length of a lock in half cells.
const LENGTHS: u64 = 6;

impl Client {
    /// Locks or unlocks a range.
    pub(super) fn lock_or_unlock(&mut self, shared: &mut Shared<'_>) {
        let Some((slot, file_id)) = self.pick_open(shared) else {
            return self.create_one(shared);
        };
        if self.choices.per_mille(400)
            && let Some((slot, place)) = self.pick_lock()
        {
            // A POSIX open may unlock any part of its locks.
            let part = match self.is_posix(slot) {
                true => self.some_place(),
                false => place,
            };
            let is_empty = self.is_posix(slot) && part.1 == 0;
            return self.unlock(slot, if is_empty { place } else { part }, shared);
        }
        let lock = Lock {
            place: self.some_place(),
            is_exclusive: self.choices.per_mille(500),
        };
        let may_wait = self.choices.per_mille(500);
        let Some(lock) = self.locking(slot, lock, shared) else {
            return self.submit(vec![Call::echo()], shared);
        };
        self.submit(vec![Call::lock(slot, file_id, lock, may_wait)], shared);
    }

    /// Prepares a request for a lock; `None` if the application of a POSIX open waits for another.
    fn locking(&mut self, number: u64, mut lock: Lock, shared: &mut Shared<'_>) -> Option<Lock> {
        let holder = (self.id, number);
        let slot = self.slots.get_mut(&number)?;
        if slot.is_posix {
            if slot.is_locking {
                return None;
            }
            slot.is_locking = true;
            // A POSIX lock has a byte.
            lock.place.1 = lock.place.1.max(1);
            shared.locks.replacing(holder, lock);
        }
        let (is_posix, key) = (slot.is_posix, slot.key);
        if let Some(key) = key.filter(|_| shared.scenario.posix > 0) {
            let start = shared.tick();
            (shared.refused_locks).locking(holder, (key, is_posix), lock, start);
        }
        Some(lock)
    }

    /// Returns whether an open has the SMB3 POSIX extensions.
    fn is_posix(&self, slot: u64) -> bool {
        self.slots.get(&slot).is_some_and(|slot| slot.is_posix)
    }

    /// Returns whether an open cannot unlock now: its application waits for a lock, or a reconnect
    /// to it is in flight.
    fn is_locking(&self, slot: u64) -> bool {
        let slot = self.slots.get(&slot);
        slot.is_some_and(|slot| slot.is_locking || slot.state == State::Opening)
    }

    fn pick_lock(&mut self) -> Option<(u64, Place)> {
        let locks = self.locked.keys().copied();
        let locks: Vec<_> = locks.filter(|(slot, _)| !self.is_locking(*slot)).collect();
        match locks.is_empty() {
            true => None,
            false => Some(self.choices.pick(&locks)),
        }
    }

    fn unlock(&mut self, number: u64, place: Place, shared: &mut Shared<'_>) {
        let Some(slot) = self.slots.get_mut(&number) else {
            self.locked.remove(&(number, place));
            return;
        };
        let (now, holder) = (shared.tick(), (self.id, number));
        match slot.is_posix {
            true => shared.locks.unlocking_part(holder, place),
            false => shared.locks.unlocking(holder, place, now),
        }
        slot.is_locking = slot.is_posix;
        let call = Call::unlock(number, slot.file_id, place);
        self.submit(vec![call], shared);
    }

    fn some_place(&mut self) -> Place {
        let half = CELL as u64 / 2;
        let start = self.choices.below(STARTS) * half;
        (start, self.choices.below(LENGTHS + 1) * half)
    }

    /// With the maximum number of requests in flight, a client may cancel a lock: two clients that
    /// wait for each other would wait forever.
    pub(super) fn maybe_cancel_lock(&mut self, shared: &mut Shared<'_>) {
        if let Some(request) = self.ledger.waiting_lock()
            && self.choices.per_mille(IMPATIENCE)
        {
            self.cancel_one(request, shared);
        }
    }

    /// Unlocks a range: after all clients have unlocked everything, no request waits.
    pub(super) fn release_a_lock(&mut self, shared: &mut Shared<'_>) {
        let is_unlocking = self.ledger.is_unlocking();
        let mut locks = self.locked.keys();
        let next = locks.find(|(slot, _)| !self.is_locking(*slot)).copied();
        if let Some((slot, place)) = next
            && !is_unlocking
            && self.can_send(1)
        {
            self.unlock(slot, place, shared);
        }
        // The application of a POSIX open waits for a lock and unlocks nothing meanwhile.
        if next.is_none()
            && !self.locked.is_empty()
            && let Some(request) = self.ledger.waiting_lock()
        {
            self.cancel_one(request, shared);
        }
    }

    /// Processes the response to an UNLOCK.
    pub(super) fn has_unlocked(
        &mut self,
        slot: u64,
        place: Place,
        header: &Header,
        span: Span,
        shared: &mut Shared<'_>,
    ) {
        if let Some(open) = self.slots.get_mut(&slot).filter(|open| open.is_posix) {
            open.is_locking = false;
            if header.status == Status::SUCCESS {
                let end = span.end.unwrap_or(u64::MAX);
                shared.refused_locks.unlocked((self.id, slot), place, end);
            }
        }
        let is_last = match self.locked.get_mut(&(slot, place)) {
            Some(times) if header.status == Status::SUCCESS => {
                *times -= 1;
                *times == 0
            }
            // The open was closed.
            _ => true,
        };
        if is_last {
            self.locked.remove(&(slot, place));
        }
    }

    pub(super) fn has_locked(
        &mut self,
        slot: u64,
        lock: Lock,
        may_wait: bool,
        header: &Header,
        span: Span,
        shared: &mut Shared<'_>,
    ) -> Check {
        ensure(
            !may_wait || header.status != Status::LOCK_NOT_GRANTED,
            || format!("the server refused a request that may wait: {header:?}"),
        )?;
        let holder = (self.id, slot);
        let is_posix = self.is_posix(slot);
        if header.status != Status::SUCCESS {
            shared.refused_locks.failed(holder, lock, span);
        }
        if let Some(open) = self.slots.get_mut(&slot).filter(|open| open.is_posix) {
            open.is_locking = false;
            self.has_locked_posix(slot, lock, header, span, shared);
        }
        match header.status {
            Status::SUCCESS => shared.report.locks += 1,
            Status::CANCELLED => shared.report.locks_cancelled += 1,
            Status::RANGE_NOT_LOCKED => shared.report.locks_ended += 1,
            _ => {}
        }
        if header.status != Status::SUCCESS {
            return Ok(());
        }
        let times = self.locked.entry((slot, lock.place)).or_default();
        *times = if is_posix { 1 } else { *times + 1 };
        let found = self.slots.get(&slot);
        let found = found.filter(|slot| slot.state == State::Open);
        match found.and_then(|slot| slot.key) {
            Some(key) => (shared.locks).locked(holder, (key, is_posix), lock, span),
            None => Ok(()),
        }
    }

    fn has_locked_posix(
        &self,
        slot: u64,
        lock: Lock,
        header: &Header,
        span: Span,
        shared: &mut Shared<'_>,
    ) {
        let holder = (self.id, slot);
        let key = self.slots.get(&slot).and_then(|slot| slot.key);
        match (header.status, key) {
            (Status::SUCCESS, _) => {
                shared.report.posix_locks += 1;
                let end = span.end.unwrap_or(u64::MAX);
                shared.refused_locks.granted(holder, lock, end);
            }
            (Status::LOCK_NOT_GRANTED, Some(key)) => {
                shared.refused_locks.refused(holder, key, lock, span);
            }
            _ => {}
        }
    }

    /// A READ or a WRITE succeeded: no other open held a conflicting lock during the whole request.
    pub(super) fn check_locks(
        &self,
        slot: u64,
        cells: &Range<u32>,
        is_write: bool,
        span: Span,
        shared: &Shared<'_>,
    ) -> Check {
        let Some(open) = self.slots.get(&slot) else {
            return Ok(());
        };
        let Some(key) = open.key else {
            return Ok(());
        };
        let cell = CELL as u64;
        let length = u64::from(cells.end - cells.start) * cell;
        let place = (u64::from(cells.start) * cell, length);
        let holder = (self.id, slot);
        (shared.locks).accessed(holder, (key, open.is_posix), place, is_write, span)
    }
}
