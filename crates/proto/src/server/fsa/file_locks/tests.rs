use alloc::vec::Vec;

use super::*;
use crate::file::ShareId;
use crate::id::{ConnectionId, OpId};

fn open(slot: u64) -> LocalOpen {
    LocalOpen {
        share: ShareId(0),
        slot,
    }
}

fn exclusive(offset: u64, length: u64) -> Wanted {
    let range = ByteRange::new(offset, length).expect("it ends before 2^64");
    (range, LockKind::Exclusive)
}

fn shared(offset: u64, length: u64) -> Wanted {
    (exclusive(offset, length).0, LockKind::Shared)
}

fn waiter(op: u64) -> Waiter {
    Waiter {
        connection: ConnectionId(7),
        op: OpId(op),
    }
}

fn owner(slot: u64) -> LockOwner {
    LockOwner {
        open: open(slot),
        flavor: LockFlavor::Windows,
    }
}

fn posix(slot: u64) -> LockOwner {
    LockOwner {
        flavor: LockFlavor::Posix,
        ..owner(slot)
    }
}

/// An open waits under its own number.
fn wait(locks: &FileLocks, slot: u64, wanted: Wanted) {
    let limits = Limits::default();
    let notices = &mut Notices::new();
    let granted = locks.lock_or_wait(owner(slot), wanted, waiter(slot), &limits, notices);
    assert_eq!(granted, Ok(false));
}

fn lock(locks: &FileLocks, slot: u64, wanted: &[Wanted]) -> Result<(), Status> {
    let notices = &mut Notices::new();
    locks.lock(owner(slot), wanted, &Limits::default(), notices)
}

/// The notified operations, and whether each got the lock.
fn settled(notices: Notices) -> Vec<(u64, bool)> {
    let settled = notices.into_iter().map(|(connection, notice)| {
        assert_eq!(connection, ConnectionId(7));
        match notice {
            Notice::LockSettled { op, is_granted } => (op.0, is_granted),
            other => panic!("{other:?}"),
        }
    });
    settled.collect()
}

fn unlock(locks: &FileLocks, slot: u64, wanted: Wanted) -> Vec<(u64, bool)> {
    let mut notices = Notices::new();
    let limits = &Limits::default();
    let unlocked = locks.unlock(owner(slot), wanted.0, limits, &mut notices);
    assert_eq!(unlocked, Ok(()));
    settled(notices)
}

#[test]
fn of_several_locks_all_are_granted_or_none() {
    let locks = FileLocks::default();
    assert_eq!(lock(&locks, 1, &[exclusive(10, 10)]), Ok(()));
    let both = [exclusive(0, 10), exclusive(10, 10)];
    assert_eq!(lock(&locks, 1, &both), Err(Status::LOCK_NOT_GRANTED));
    assert_eq!(lock(&locks, 2, &[exclusive(0, 10)]), Ok(()));
    let twice = [exclusive(30, 1), exclusive(30, 1)];
    assert_eq!(lock(&locks, 1, &twice), Err(Status::LOCK_NOT_GRANTED));
    // The rollback removes the granted locks, not equal locks from before.
    assert_eq!(lock(&locks, 1, &[exclusive(50, 1)]), Ok(()));
    let more = [shared(50, 1), exclusive(50, 1)];
    assert_eq!(lock(&locks, 1, &more), Err(Status::LOCK_NOT_GRANTED));
    assert_eq!(
        lock(&locks, 2, &[shared(50, 1)]),
        Err(Status::LOCK_NOT_GRANTED)
    );
    unlock(&locks, 1, exclusive(50, 1));
    assert_eq!(lock(&locks, 2, &[exclusive(50, 1)]), Ok(()));
}

#[test]
fn waiting_locks_are_granted_in_order() {
    let locks = FileLocks::default();
    assert_eq!(lock(&locks, 1, &[exclusive(0, 10)]), Ok(()));
    wait(&locks, 2, shared(0, 5));
    wait(&locks, 3, exclusive(0, 5));
    wait(&locks, 4, shared(4, 6));
    wait(&locks, 5, exclusive(9, 1));
    // Both shared locks are granted before the exclusive one, which conflicts.
    assert_eq!(unlock(&locks, 1, exclusive(0, 10)), [(2, true), (4, true)]);
    assert_eq!(locks.waiting(), 2);
    assert_eq!(unlock(&locks, 4, shared(4, 6)), [(5, true)]);
    assert_eq!(unlock(&locks, 2, shared(0, 5)), [(3, true)]);
    assert_eq!(unlock(&locks, 3, exclusive(0, 5)), []);
    assert_eq!(unlock(&locks, 5, exclusive(9, 1)), []);
    assert!(locks.is_empty());
}

#[test]
fn an_open_that_goes_takes_its_locks_and_its_requests_along() {
    let locks = FileLocks::default();
    assert_eq!(lock(&locks, 1, &[exclusive(0, 10), shared(20, 5)]), Ok(()));
    wait(&locks, 2, exclusive(0, 1));
    wait(&locks, 1, exclusive(0, 1));
    wait(&locks, 3, exclusive(22, 1));
    let mut notices = Notices::new();
    locks.leave(open(1), &mut notices);
    assert_eq!(settled(notices), [(1, false), (2, true), (3, true)]);
    assert_eq!(locks.waiting(), 0);
    assert!(!locks.is_empty());
}

#[test]
fn a_canceled_wait_reports_whether_it_still_waited() {
    let locks = FileLocks::default();
    assert_eq!(lock(&locks, 1, &[exclusive(0, 10)]), Ok(()));
    wait(&locks, 2, exclusive(0, 1));
    wait(&locks, 3, exclusive(0, 1));
    assert!(locks.withdraw(waiter(2)));
    assert!(!locks.withdraw(waiter(2)));
    assert_eq!(unlock(&locks, 1, exclusive(0, 10)), [(3, true)]);
    assert!(!locks.withdraw(waiter(3)));
    assert_eq!(
        lock(&locks, 2, &[exclusive(0, 1)]),
        Err(Status::LOCK_NOT_GRANTED)
    );
}

#[test]
fn there_is_an_end_to_locks() {
    let limits = Limits {
        locks_per_open: 2,
        locks_per_file: 3,
        ..Limits::default()
    };
    let locks = FileLocks::default();
    let notices = &mut Notices::new();
    let mut try_lock = |slot, wanted: &[Wanted]| locks.lock(owner(slot), wanted, &limits, notices);
    let full = Err(Status::INSUFFICIENT_RESOURCES);
    let three = [shared(0, 1), shared(0, 1), shared(0, 1)];
    assert_eq!(try_lock(1, &three), full);
    assert_eq!(try_lock(1, &three[..2]), Ok(()));
    assert_eq!(try_lock(1, &three[..1]), full);
    assert_eq!(try_lock(2, &three[..1]), Ok(()));
    assert_eq!(try_lock(3, &three[..1]), full);
    let notices = &mut Notices::new();
    let waits = locks.lock_or_wait(owner(3), exclusive(0, 1), waiter(3), &limits, notices);
    assert_eq!(waits, Err(Status::INSUFFICIENT_RESOURCES));
}

#[test]
fn a_posix_lock_that_becomes_shared_grants_others_theirs() {
    let (locks, limits) = (FileLocks::default(), Limits::default());
    let notices = &mut Notices::new();
    let whole = [exclusive(0, 100)];
    assert_eq!(locks.lock(posix(1), &whole, &limits, notices), Ok(()));
    for slot in [2, 3] {
        let waits = locks.lock_or_wait(posix(slot), shared(0, 10), waiter(slot), &limits, notices);
        assert_eq!(waits, Ok(false));
    }
    wait(&locks, 4, exclusive(50, 1));
    assert_eq!(notices.len(), 0);
    let downgraded = locks.lock(posix(1), &[shared(0, 50)], &limits, notices);
    assert_eq!(downgraded, Ok(()));
    assert_eq!(settled(core::mem::take(notices)), [(2, true), (3, true)]);
    let range = exclusive(0, u64::MAX).0;
    assert_eq!(locks.unlock(posix(1), range, &limits, notices), Ok(()));
    assert_eq!(settled(core::mem::take(notices)), [(4, true)]);
    assert_eq!(locks.unlock(posix(1), range, &limits, notices), Ok(()));
    let empty = locks.lock(posix(1), &[exclusive(5, 0)], &limits, notices);
    assert_eq!(empty, Err(Status::INVALID_PARAMETER));
}

#[test]
fn posix_locks_have_limits() {
    let limits = Limits {
        locks_per_open: 3,
        ..Limits::default()
    };
    let (locks, notices) = (FileLocks::default(), &mut Notices::new());
    let whole = [exclusive(0, 100)];
    assert_eq!(locks.lock(posix(1), &whole, &limits, notices), Ok(()));
    let range = |offset| exclusive(offset, 1).0;
    assert_eq!(locks.unlock(posix(1), range(10), &limits, notices), Ok(()));
    let refused = locks.unlock(posix(1), range(20), &limits, notices);
    assert_eq!(refused, Err(Status::INSUFFICIENT_RESOURCES));
    assert_eq!(locks.count_of(open(1)), 2);
}
