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
            return self.unlock(slot, place, shared);
        }
        let lock = Lock {
            place: self.some_place(),
            is_exclusive: self.choices.per_mille(500),
        };
        let may_wait = self.choices.per_mille(500);
        self.submit(vec![Call::lock(slot, file_id, lock, may_wait)], shared);
    }

    fn pick_lock(&mut self) -> Option<(u64, Place)> {
        let locks: Vec<(u64, Place)> = self.locked.keys().copied().collect();
        match locks.is_empty() {
            true => None,
            false => Some(self.choices.pick(&locks)),
        }
    }

    fn unlock(&mut self, slot: u64, place: Place, shared: &mut Shared<'_>) {
        let Some(file_id) = self.slots.get(&slot).map(|slot| slot.file_id) else {
            self.locked.remove(&(slot, place));
            return;
        };
        let now = shared.tick();
        shared.locks.unlocking((self.id, slot), place, now);
        self.submit(vec![Call::unlock(slot, file_id, place)], shared);
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
        let next = self.locked.first_key_value().map(|(lock, _)| *lock);
        if let Some((slot, place)) = next
            && !is_unlocking
            && self.can_send(1)
        {
            self.unlock(slot, place, shared);
        }
    }

    /// Processes the response to an UNLOCK.
    pub(super) fn has_unlocked(&mut self, slot: u64, place: Place, header: &Header) {
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
        match header.status {
            Status::SUCCESS => shared.report.locks += 1,
            Status::CANCELLED => shared.report.locks_cancelled += 1,
            Status::RANGE_NOT_LOCKED => shared.report.locks_ended += 1,
            _ => {}
        }
        if header.status != Status::SUCCESS {
            return Ok(());
        }
        *self.locked.entry((slot, lock.place)).or_default() += 1;
        let found = self.slots.get(&slot);
        let found = found.filter(|slot| slot.state == State::Open);
        match found.and_then(|slot| slot.key) {
            Some(key) => shared.locks.locked((self.id, slot), key, lock, span),
            None => Ok(()),
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
        let Some(key) = self.slots.get(&slot).and_then(|slot| slot.key) else {
            return Ok(());
        };
        let cell = CELL as u64;
        let length = u64::from(cells.end - cells.start) * cell;
        let place = (u64::from(cells.start) * cell, length);
        let holder = (self.id, slot);
        shared.locks.accessed(holder, key, place, is_write, span)
    }
}
