use alloc::vec;
use alloc::vec::Vec;

use wire::access::{OplockLevel, ShareAccess};
use wire::{FileId, Guid, SessionId};

use super::breaking::{BreakWait, OpenAttempt};
use super::state::{Kind, Transition};
use super::*;
use crate::file::{ShareId, StreamId};
use crate::id::{ConnectionId, OpId};
use crate::notice::Notice;
use crate::path::SharePath;
use crate::server::fsa::{Admission, OpenRecord, Sharing};
use crate::server::notices::Waiter;
use crate::time::Instant;

const KEY: FileKey = FileKey {
    volume: 1,
    file: 2,
    stream: StreamId::DATA,
};
const DEADLINE: Instant = Instant(core::time::Duration::from_secs(35));
const R: LeaseState = LeaseState::READ_CACHING;
const RH: LeaseState = LeaseState(R.0 | LeaseState::HANDLE_CACHING.0);
const RW: LeaseState = LeaseState(R.0 | LeaseState::WRITE_CACHING.0);
const RWH: LeaseState = LeaseState(RW.0 | RH.0);
const NONE: LeaseState = LeaseState::NONE;
const LEASE: HolderId = HolderId::Lease {
    client: Guid([1; 16]),
    key: Guid([2; 16]),
};

fn file(slot: u64) -> LocalOpen {
    LocalOpen {
        share: ShareId(0),
        slot,
    }
}

fn waiter(number: u64) -> Waiter {
    Waiter {
        connection: ConnectionId(number),
        op: OpId(number),
    }
}

fn target(number: u64) -> BreakTarget {
    BreakTarget {
        connection: ConnectionId(number),
        session: SessionId(number),
        file_id: FileId {
            persistent: number,
            volatile: number,
        },
    }
}

/// An open with this number arrives, from a connection with the same number.
fn enter_as(
    table: &FileTable,
    slot: u64,
    holder: HolderId,
    overwrites: bool,
    notices: &mut Notices,
) -> Result<Admission, Status> {
    let checked = Sharing {
        access: AccessMask::FILE_READ_DATA,
        share: ShareAccess::READ,
    };
    let record = OpenRecord {
        file: file(slot),
        sharing: checked,
        path: SharePath::from_trusted("a"),
        delete_on_close: false,
        is_stat_only: false,
        holder,
        target: None,
    };
    let attempt = OpenAttempt {
        checked,
        overwrites,
        wait: BreakWait {
            waiter: waiter(slot),
            now: Instant::default(),
            deadline: DEADLINE,
        },
    };
    table.enter(KEY, record, &attempt, notices)
}

fn enter(table: &FileTable, slot: u64, notices: &mut Notices) -> Result<Admission, Status> {
    enter_as(table, slot, HolderId::Open(file(slot)), false, notices)
}

fn grant(table: &FileTable, slot: u64, wanted: LeaseState) -> LeaseState {
    table.grant(KEY, file(slot), wanted, &target(slot)).rights
}

fn woken(numbers: &[u64]) -> Notices {
    let notice = |number: &u64| (ConnectionId(*number), Notice::CachingBroken(OpId(*number)));
    numbers.iter().map(notice).collect()
}

fn broken(to_slot: u64, holder: HolderId, from: LeaseState, to: LeaseState) -> Notices {
    let BreakTarget {
        connection,
        session,
        file_id,
    } = target(to_slot);
    let notice = Notice::BreakCaching {
        session,
        file_id,
        lease_key: holder.lease_key(),
        from,
        to,
    };
    vec![(connection, notice)]
}

#[test]
fn oplock_levels_are_names_for_rights() {
    for (level, rights) in [
        (OplockLevel::NONE, NONE),
        (OplockLevel::II, R),
        (OplockLevel::EXCLUSIVE, RW),
        (OplockLevel::BATCH, RWH),
    ] {
        assert_eq!(of_oplock(level), rights);
        assert_eq!(oplock_level(rights), level);
    }
    assert_eq!(oplock_level(RH), OplockLevel::II);
}

#[test]
fn an_open_breaks_the_rights_that_are_in_its_way() {
    let breaking = |from| State::Breaking {
        from,
        to: R,
        deadline: DEADLINE,
    };
    let wait_to = |to| Transition::Break {
        to,
        must_wait: true,
    };
    let pass_to = |to| Transition::Break {
        to,
        must_wait: false,
    };
    let keep = Transition::Unaffected;
    let revoke = Transition::Revoke;
    let wait = Transition::Wait;
    let (oplock, lease) = (Kind::Oplock, Kind::Lease);
    let rows = [
        // An open, an overwrite, an open with a sharing violation, an overwrite with one.
        (oplock, State::Held(R), [keep, revoke, keep, keep]),
        (
            oplock,
            State::Held(RW),
            [wait_to(R), wait_to(NONE), keep, keep],
        ),
        (
            oplock,
            State::Held(RWH),
            [wait_to(R), wait_to(NONE), wait_to(R), wait_to(NONE)],
        ),
        (oplock, breaking(RW), [wait, wait, keep, keep]),
        (oplock, breaking(RWH), [wait; 4]),
        (lease, State::Held(R), [keep, revoke, keep, keep]),
        (
            lease,
            State::Held(RH),
            [keep, pass_to(NONE), wait_to(R), wait_to(NONE)],
        ),
        (
            lease,
            State::Held(RW),
            [wait_to(R), wait_to(NONE), keep, keep],
        ),
        (
            lease,
            State::Held(RWH),
            [wait_to(RH), wait_to(NONE), wait_to(RW), wait_to(NONE)],
        ),
        (lease, breaking(RH), [keep, keep, wait, wait]),
    ];
    for (kind, state, row) in rows {
        let columns = [(false, false), (false, true), (true, false), (true, true)];
        for ((violates, overwrites), transition) in columns.into_iter().zip(row) {
            let found = state.transition(kind, violates, overwrites);
            assert_eq!(
                found, transition,
                "{kind:?} {state:?} {violates} {overwrites}"
            );
        }
    }
}

#[test]
fn each_waiting_request_is_woken_once() {
    let table = FileTable::default();
    let mut notices = Notices::new();
    assert_eq!(enter(&table, 1, &mut notices), Ok(Admission::Entered));
    assert_eq!(grant(&table, 1, RWH), RWH);
    for slot in [2, 3, 4] {
        let admission = enter(&table, slot, &mut notices);
        assert_eq!(admission, Ok(Admission::Wait(DEADLINE)));
    }
    // The holder receives one notification.
    assert_eq!(notices, broken(1, HolderId::Open(file(1)), RWH, R));
    table.forget_waiter(KEY, waiter(3));
    assert_eq!(table.waiters(), 2);
    let mut notices = Notices::new();
    let kept = table.acknowledge(KEY, file(1), R, &mut notices);
    assert_eq!(kept, Ok(R));
    assert_eq!(notices, woken(&[2, 4]));
    assert_eq!(table.waiters(), 0);
    assert_eq!(table.close(KEY, file(1)).notices, woken(&[]));
}

#[test]
fn a_break_ends_with_the_open_or_with_its_time_limit() {
    for expires in [false, true] {
        let table = FileTable::default();
        let mut notices = Notices::new();
        assert_eq!(enter(&table, 1, &mut notices), Ok(Admission::Entered));
        grant(&table, 1, RW);
        let admission = enter(&table, 2, &mut notices);
        assert_eq!(admission, Ok(Admission::Wait(DEADLINE)));
        let mut notices = Notices::new();
        if expires {
            let early = Instant::default();
            assert_eq!(table.expire(KEY, early, &mut notices), Some(DEADLINE));
            assert_eq!(notices, woken(&[]));
            assert_eq!(table.expire(KEY, DEADLINE, &mut notices), None);
        } else {
            notices = table.close(KEY, file(1)).notices;
        }
        assert_eq!(notices, woken(&[2]));
        assert_eq!(table.waiters(), 0);
    }
}

#[test]
fn a_write_breaks_read_caching_and_nothing_else() {
    let table = FileTable::default();
    let mut notices = Notices::new();
    for slot in [1, 2, 3] {
        assert_eq!(enter(&table, slot, &mut notices), Ok(Admission::Entered));
    }
    grant(&table, 1, R);
    let granted = table.grant(KEY, file(2), RWH, &target(2));
    let (rights, has_readers) = (granted.rights, granted.has_readers);
    assert_eq!(rights, R);
    assert!(has_readers.load(Ordering::SeqCst));
    table.break_read_caching(KEY, file(3), DEADLINE, &mut notices);
    assert!(!has_readers.load(Ordering::SeqCst));
    let notified: Vec<ConnectionId> = notices.iter().map(|(connection, _)| *connection).collect();
    assert_eq!(notified, [ConnectionId(1), ConnectionId(2)]);
    let mut notices = Notices::new();
    table.break_read_caching(KEY, file(3), DEADLINE, &mut notices);
    assert_eq!(notices, woken(&[]));
}

#[test]
fn opens_with_one_lease_key_share_a_lease_and_do_not_break_it() {
    let table = FileTable::default();
    let mut notices = Notices::new();
    let first = enter_as(&table, 1, LEASE, false, &mut notices);
    assert_eq!(first, Ok(Admission::Entered));
    assert_eq!(grant(&table, 1, RWH), RWH);
    // An open with the same key, even one that overwrites.
    let second = enter_as(&table, 2, LEASE, true, &mut notices);
    assert_eq!(second, Ok(Admission::Entered));
    assert_eq!(grant(&table, 2, R), RWH, "a lease keeps its rights");
    assert_eq!(notices, woken(&[]));
    // An open of another client. The client hears of the break once, through its newest open.
    let third = enter(&table, 3, &mut notices);
    assert_eq!(third, Ok(Admission::Wait(DEADLINE)));
    assert_eq!(notices, broken(2, LEASE, RWH, RH));
    // The lease lasts until its last open is closed, and so does the wait.
    assert_eq!(table.close(KEY, file(2)).notices, woken(&[]));
    assert_eq!(table.rights(KEY, file(1)), (RWH, RH));
    let mut notices = Notices::new();
    let kept = table.acknowledge(KEY, file(1), RH, &mut notices);
    assert_eq!(kept, Ok(RH));
    assert_eq!(notices, woken(&[3]));
    let mut notices = Notices::new();
    assert_eq!(enter(&table, 3, &mut notices), Ok(Admission::Entered));
    assert_eq!(grant(&table, 3, RWH), R, "others cache the file");
    assert_eq!(notices, woken(&[]));
}

#[test]
fn a_lease_is_not_broken_by_writes_of_its_own_client() {
    let table = FileTable::default();
    let mut notices = Notices::new();
    for slot in [1, 2] {
        let admission = enter_as(&table, slot, LEASE, false, &mut notices);
        assert_eq!(admission, Ok(Admission::Entered));
    }
    assert_eq!(enter(&table, 3, &mut notices), Ok(Admission::Entered));
    assert_eq!(
        grant(&table, 1, RWH),
        RH,
        "another client has the file open"
    );
    table.break_read_caching(KEY, file(2), DEADLINE, &mut notices);
    assert_eq!(notices, woken(&[]));
    table.break_read_caching(KEY, file(3), DEADLINE, &mut notices);
    assert_eq!(notices, broken(1, LEASE, RH, NONE));
    assert_eq!(table.rights(KEY, file(2)), (RH, NONE));
}

#[test]
fn a_lease_ends_with_its_last_open() {
    let table = FileTable::default();
    let mut notices = Notices::new();
    for slot in [1, 2] {
        let admission = enter_as(&table, slot, LEASE, false, &mut notices);
        assert_eq!(admission, Ok(Admission::Entered));
    }
    assert_eq!(grant(&table, 1, RWH), RWH);
    let waits = enter(&table, 3, &mut notices);
    assert_eq!(waits, Ok(Admission::Wait(DEADLINE)));
    assert_eq!(table.close(KEY, file(1)).notices, woken(&[]));
    assert_eq!(table.close(KEY, file(2)).notices, woken(&[3]));
    assert!(!table.is_open(KEY));
}
