//! The byte-range locks of a stream, and the requests that wait for one. \[MS-FSA\] 2.1.5.8,
//! 2.1.5.9
//!
//! Every open of the file has a hand on it, so that to lock, to unlock and to ask before a READ or
//! a WRITE takes no other lock than that of this file, and none at all where nothing is locked.
//!
//! The request that removes a lock grants the waiting requests theirs, the oldest first, and then
//! notifies them: no other request can come in between. As in Windows and Samba, a waiting request
//! does not keep others from locking.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};

use spin::Mutex;
use wire::Status;

use super::byte_range::{ByteRange, ByteRangeLocks, LockFlavor, LockKind, RangeAccess};
use crate::file::LocalOpen;
use crate::notice::Notice;
use crate::server::config::Limits;
use crate::server::notices::{Notices, Waiter};

/// An open that locks, reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LockOwner {
    pub(crate) open: LocalOpen,
    pub(crate) flavor: LockFlavor,
}

/// A requested lock.
pub(crate) type Wanted = (ByteRange, LockKind);

/// The byte-range locks of a file.
#[derive(Debug, Default)]
pub(crate) struct FileLocks {
    /// Number of locks. A check for none takes no lock on the table.
    held: AtomicUsize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    locks: ByteRangeLocks,
    /// The oldest first. Each is in conflict with a lock that is held.
    waiting: VecDeque<Waiting>,
}

/// A request that waits for a lock.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    waiter: Waiter,
    owner: LockOwner,
    wanted: Wanted,
}

impl FileLocks {
    /// Whether nothing is locked.
    pub(crate) fn is_empty(&self) -> bool {
        self.held.load(Ordering::SeqCst) == 0
    }

    /// Whether any lock starts below this offset in bytes.
    pub(crate) fn is_any_below(&self, offset: u64) -> bool {
        !self.is_empty() && self.state.lock().locks.is_any_below(offset)
    }

    /// Whether an open may read or write a range.
    pub(crate) fn check(
        &self,
        owner: LockOwner,
        access: RangeAccess,
        range: ByteRange,
    ) -> Result<(), Status> {
        if self.is_empty() {
            return Ok(());
        }
        let locks = &self.state.lock().locks;
        let is_forbidden = match owner.flavor {
            LockFlavor::Windows => locks.forbids(owner.open, range, access),
            LockFlavor::Posix => locks.forbids_posix(owner.open, range, access),
        };
        match is_forbidden {
            true => Err(Status::FILE_LOCK_CONFLICT),
            false => Ok(()),
        }
    }

    /// Grants all locks, or none. A POSIX lock that replaces another one may let others have
    /// theirs.
    pub(crate) fn lock(
        &self,
        owner: LockOwner,
        wanted: &[Wanted],
        limits: &Limits,
        notices: &mut Notices,
    ) -> Result<(), Status> {
        let mut state = self.state.lock();
        let granted = state.lock(owner, wanted, limits, notices);
        self.note(&state);
        granted
    }

    /// Grants a lock, or lets the request wait for it. Whether it is granted.
    pub(crate) fn lock_or_wait(
        &self,
        owner: LockOwner,
        wanted: Wanted,
        waiter: Waiter,
        limits: &Limits,
        notices: &mut Notices,
    ) -> Result<bool, Status> {
        let mut state = self.state.lock();
        let is_granted = state.lock(owner, &[wanted], limits, notices);
        if is_granted == Err(Status::LOCK_NOT_GRANTED) {
            state.waiting.push_back(Waiting {
                waiter,
                owner,
                wanted,
            });
            return Ok(false);
        }
        self.note(&state);
        is_granted.map(|()| true)
    }

    /// Takes a lock of just this range away, an exclusive one first. A POSIX open unlocks the whole
    /// range, of which it may have locked nothing.
    pub(crate) fn unlock(
        &self,
        owner: LockOwner,
        range: ByteRange,
        limits: &Limits,
        notices: &mut Notices,
    ) -> Result<(), Status> {
        let mut state = self.state.lock();
        match owner.flavor {
            LockFlavor::Windows if !state.locks.remove(owner.open, range) => {
                return Err(Status::RANGE_NOT_LOCKED);
            }
            LockFlavor::Windows => {}
            LockFlavor::Posix if range.length() == 0 => return Err(Status::RANGE_NOT_LOCKED),
            LockFlavor::Posix => {
                if state.locks.splits(owner.open, range) {
                    state.check_room(owner, 1, limits)?;
                }
                state.locks.replace(owner.open, range, None);
            }
        }
        state.grant(|waiting| waiting.wanted.0.overlaps(range), notices);
        self.note(&state);
        Ok(())
    }

    /// Ends the wait of a request. Returns false if the request no longer waited: the lock was
    /// granted, or its open was closed.
    pub(crate) fn withdraw(&self, waiter: Waiter) -> bool {
        let waiting = &mut self.state.lock().waiting;
        let before = waiting.len();
        waiting.retain(|other| other.waiter != waiter);
        waiting.len() < before
    }

    /// An open goes, and its locks with it; its requests that wait have waited in vain.
    pub(crate) fn leave(&self, owner: LocalOpen, notices: &mut Notices) {
        let mut state = self.state.lock();
        state.waiting.retain(|waiting| {
            if waiting.owner.open == owner {
                notices.push(waiting.settled(false));
            }
            waiting.owner.open != owner
        });
        if state.locks.remove_all(owner) {
            state.grant(every, notices);
        }
        self.note(&state);
    }

    /// Some of the locks of an open, and how many it has.
    pub(crate) fn held_by(&self, owner: LocalOpen, limit: usize) -> (Vec<Wanted>, usize) {
        if self.is_empty() {
            return (Vec::new(), 0);
        }
        let locks = &self.state.lock().locks;
        (locks.of(owner, limit), locks.len_of(owner))
    }

    /// Number of locks of an open.
    pub(crate) fn count_of(&self, owner: LocalOpen) -> usize {
        match self.is_empty() {
            true => 0,
            false => self.state.lock().locks.len_of(owner),
        }
    }

    fn note(&self, state: &State) {
        self.held.store(state.locks.len(), Ordering::SeqCst);
    }

    /// Requests that wait.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.state.lock().waiting.len()
    }
}

impl State {
    fn check_room(&self, owner: LockOwner, wanted: usize, limits: &Limits) -> Result<(), Status> {
        let more = match owner.flavor {
            LockFlavor::Windows => wanted,
            // A lock in the middle of another one splits it.
            LockFlavor::Posix => wanted * 2,
        };
        let is_too_much = self.locks.len() + more > limits.locks_per_file
            || self.locks.len_of(owner.open) + more > limits.locks_per_open;
        if is_too_much {
            return Err(Status::INSUFFICIENT_RESOURCES);
        }
        Ok(())
    }

    fn lock(
        &mut self,
        owner: LockOwner,
        wanted: &[Wanted],
        limits: &Limits,
        notices: &mut Notices,
    ) -> Result<(), Status> {
        self.check_room(owner, wanted.len(), limits)?;
        self.lock_all(owner, wanted)?;
        if owner.flavor == LockFlavor::Posix {
            self.grant(every, notices);
        }
        Ok(())
    }

    fn lock_all(&mut self, owner: LockOwner, wanted: &[Wanted]) -> Result<(), Status> {
        let owner = match owner.flavor {
            LockFlavor::Windows => owner.open,
            LockFlavor::Posix => return self.lock_all_posix(owner.open, wanted),
        };
        for (index, (range, kind)) in wanted.iter().enumerate() {
            if !self.locks.admits(owner, *range, *kind) {
                for (range, kind) in &wanted[..index] {
                    let was_there = self.locks.remove_kind(owner, *range, *kind);
                    assert!(was_there, "it was just granted");
                }
                return Err(Status::LOCK_NOT_GRANTED);
            }
            self.locks.add(owner, *range, *kind);
        }
        Ok(())
    }

    fn lock_all_posix(&mut self, owner: LocalOpen, wanted: &[Wanted]) -> Result<(), Status> {
        // As in Samba: a lock has a byte.
        if wanted.iter().any(|(range, _)| range.length() == 0) {
            return Err(Status::INVALID_PARAMETER);
        }
        let mut all = wanted.iter();
        if !all.all(|(range, kind)| self.locks.admits_posix(owner, *range, *kind)) {
            return Err(Status::LOCK_NOT_GRANTED);
        }
        for (range, kind) in wanted {
            self.locks.replace(owner, *range, Some(*kind));
        }
        Ok(())
    }

    /// Grants the locks that have become possible to the waiting requests, the oldest first.
    fn grant(&mut self, is_concerned: impl Fn(&Waiting) -> bool, notices: &mut Notices) {
        let Self { locks, waiting } = self;
        let mut has_replaced = false;
        waiting.retain(|waiting| {
            let is_granted = is_concerned(waiting) && waiting.take(locks);
            if is_granted {
                has_replaced |= waiting.owner.flavor == LockFlavor::Posix;
                notices.push(waiting.settled(true));
            }
            !is_granted
        });
        // A POSIX lock may have replaced an exclusive one.
        if has_replaced {
            self.grant(every, notices);
        }
    }
}

fn every(_: &Waiting) -> bool {
    true
}

impl Waiting {
    /// Adds the lock if it has become possible. Whether it has.
    fn take(&self, locks: &mut ByteRangeLocks) -> bool {
        let (open, (range, kind)) = (self.owner.open, self.wanted);
        match self.owner.flavor {
            LockFlavor::Windows if locks.admits(open, range, kind) => locks.add(open, range, kind),
            LockFlavor::Posix if locks.admits_posix(open, range, kind) => {
                locks.replace(open, range, Some(kind));
            }
            LockFlavor::Windows | LockFlavor::Posix => return false,
        }
        true
    }

    fn settled(&self, is_granted: bool) -> (crate::id::ConnectionId, Notice) {
        let op = self.waiter.op;
        (
            self.waiter.connection,
            Notice::LockSettled { op, is_granted },
        )
    }
}

#[cfg(test)]
mod tests;
