use alloc::vec;
use alloc::vec::Vec;

use wire::access::{OplockLevel, ShareAccess};
use wire::create_context::LeaseFlags;
use wire::{FileId, SessionId};

use super::breaking::{BreakWait, OpenAttempt};
use super::state::{Conflict, Transition};
use super::*;
use crate::file::{ShareId, StreamId};
use crate::id::{ConnectionId, OpId};
use crate::notice::{CachingBreak, LeaseBreak, Notice};
use crate::path::SharePath;
use crate::server::config::Limits;
use crate::server::fsa::{Admission, Close, OpenRecord, Sharing};
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
const LEASE_ID: LeaseId = LeaseId {
    client: Guid([1; 16]),
    key: Guid([2; 16]),
};
const LEASE: HolderId = HolderId::Lease(LEASE_ID);
/// Epoch of a request.
const EPOCH: u16 = 7;

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
        is_posix: false,
    };
    let record = OpenRecord {
        file: file(slot),
        sharing: checked,
        path: SharePath::from_trusted("a"),
        delete_on_close: false,
        is_stat_only: false,
        holder,
        parent_lease: None,
        target: None,
    };
    let attempt = OpenAttempt {
        checked,
        overwrites,
        is_retry: false,
        removals: 0,
        lease: holder.lease(),
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

fn request(slot: u64, wanted: LeaseState) -> CachingRequest {
    CachingRequest {
        wanted,
        terms: LeaseTerms {
            is_v2: true,
            epoch: EPOCH,
        },
        is_directory: false,
        now: Instant::default(),
        size: 100,
        target: target(slot),
    }
}

fn grant(table: &FileTable, slot: u64, wanted: LeaseState) -> LeaseState {
    let granted = table.grant(KEY, file(slot), &request(slot, wanted));
    match granted.lease {
        Some(lease) => lease.lease_state,
        None => granted.rights,
    }
}

/// The rights of a lease and its epoch, and whether a break is in progress.
fn lease_of(table: &FileTable, slot: u64) -> (LeaseState, u16, bool) {
    let (_, lease) = table.settle(KEY, file(slot), &mut Notices::new());
    let lease = lease.expect("the open has a lease");
    let is_breaking = lease.lease_flags.contains(LeaseFlags::BREAK_IN_PROGRESS);
    let v2 = lease.v2.expect("the lease has version 2");
    (lease.lease_state, v2.epoch, is_breaking)
}

/// The client acknowledges a break of [`LEASE`].
fn acknowledge_lease(
    table: &FileTable,
    rights: LeaseState,
    notices: &mut Notices,
) -> Result<(), Status> {
    table.acknowledge_lease(LEASE_ID, rights, DEADLINE, notices)
}

fn close(table: &FileTable, slot: u64) -> Close {
    let close = table.close(KEY, file(slot), DEADLINE);
    Close {
        entry: None,
        ..close
    }
}

fn woken(numbers: &[u64]) -> Notices {
    let notice = |number: &u64| (ConnectionId(*number), Notice::CachingBroken(OpId(*number)));
    numbers.iter().map(notice).collect()
}

fn broken(to_slot: u64, from: LeaseState, to: LeaseState) -> Notices {
    notification(to_slot, None, from, to)
}

/// A break of [`LEASE`] after this number of changes of its state.
fn lease_broken(to_slot: u64, changes: u16, from: LeaseState, to: LeaseState) -> Notices {
    let lease = LeaseBreak {
        client: LEASE_ID.client,
        key: LEASE_ID.key,
        epoch: EPOCH + changes,
        needs_ack: from != R,
    };
    notification(to_slot, Some(lease), from, to)
}

fn notification(
    to_slot: u64,
    lease: Option<LeaseBreak>,
    from: LeaseState,
    to: LeaseState,
) -> Notices {
    let BreakTarget {
        connection,
        session,
        file_id,
    } = target(to_slot);
    let caching_break = CachingBreak {
        session,
        file_id,
        lease,
        from,
        to,
    };
    vec![(connection, Notice::BreakCaching(caching_break))]
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
    let held = State::new;
    let breaking = |kind, from, to| {
        let mut state = State::new(kind, from);
        state.break_to(to, DEADLINE).expect("it has these rights");
        state
    };
    let waits = |to| Transition {
        to,
        must_wait: true,
    };
    let passes = |to| Transition {
        to,
        must_wait: false,
    };
    let (oplock, lease) = (Kind::Oplock, Kind::Lease);
    let rows = [
        // An open, an overwrite, an open with a sharing violation, an overwrite with one.
        (
            held(oplock, R),
            [passes(R), passes(NONE), passes(R), passes(R)],
        ),
        (
            held(oplock, RW),
            [waits(R), waits(NONE), passes(RW), passes(RW)],
        ),
        (
            held(oplock, RWH),
            [waits(R), waits(NONE), waits(R), waits(R)],
        ),
        (
            breaking(oplock, RW, R),
            [waits(R), waits(NONE), passes(RW), passes(RW)],
        ),
        (
            held(lease, R),
            [passes(R), passes(NONE), passes(R), passes(R)],
        ),
        (
            held(lease, RH),
            [passes(RH), passes(NONE), waits(R), waits(R)],
        ),
        (
            held(lease, RW),
            [waits(R), waits(NONE), passes(RW), passes(RW)],
        ),
        (
            held(lease, RWH),
            [waits(RH), waits(NONE), waits(RW), waits(RW)],
        ),
        (
            breaking(lease, RH, R),
            [waits(RH), passes(NONE), waits(R), waits(R)],
        ),
    ];
    for (state, row) in rows {
        let columns = [(false, false), (false, true), (true, false), (true, true)];
        for ((violates, overwrites), transition) in columns.into_iter().zip(row) {
            let conflict = Conflict {
                violates,
                overwrites,
                is_retry: false,
            };
            let found = state.on_open(conflict);
            assert_eq!(found, transition, "{state:?} {conflict:?}");
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
    assert_eq!(notices, broken(1, RWH, R));
    table.forget_waiter(KEY, waiter(3));
    assert_eq!(table.waiters(), 2);
    let mut notices = Notices::new();
    let kept = table.acknowledge(KEY, file(1), R, &mut notices);
    assert_eq!(kept, Ok(R));
    assert_eq!(notices, woken(&[2, 4]));
    assert_eq!(table.waiters(), 0);
    assert_eq!(close(&table, 1).notices, woken(&[]));
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
            notices = close(&table, 1).notices;
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
    let granted = table.grant(KEY, file(2), &request(2, RWH));
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
    // An open of another client. The client receives one notification, through its newest open.
    let third = enter(&table, 3, &mut notices);
    assert_eq!(third, Ok(Admission::Wait(DEADLINE)));
    assert_eq!(notices, lease_broken(2, 2, RWH, RH));
    // The lease lasts until its last open is closed, and so does the wait.
    assert_eq!(close(&table, 2).notices, woken(&[]));
    assert_eq!(lease_of(&table, 1), (RWH, EPOCH + 2, true));
    let mut notices = Notices::new();
    assert_eq!(acknowledge_lease(&table, RH, &mut notices), Ok(()));
    assert_eq!(notices, woken(&[3]));
    let mut notices = Notices::new();
    assert_eq!(enter(&table, 3, &mut notices), Ok(Admission::Entered));
    assert_eq!(
        grant(&table, 3, RWH),
        NONE,
        "another client caches the open"
    );
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
    assert_eq!(notices, lease_broken(1, 2, RH, NONE));
    assert_eq!(lease_of(&table, 1), (RH, EPOCH + 2, true));
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
    assert_eq!(close(&table, 1).notices, woken(&[]));
    assert_eq!(close(&table, 2).notices, woken(&[3]));
    assert!(!table.is_open(KEY));
    let acknowledged = acknowledge_lease(&table, RH, &mut notices);
    assert_eq!(acknowledged, Err(Status::OBJECT_NAME_NOT_FOUND));
}

#[test]
fn a_lease_is_upgraded_to_all_wanted_rights_or_to_none() {
    let table = FileTable::default();
    let mut notices = Notices::new();
    for slot in [1, 2] {
        let admission = enter_as(&table, slot, LEASE, false, &mut notices);
        assert_eq!(admission, Ok(Admission::Entered));
    }
    assert_eq!(grant(&table, 1, R), R);
    assert_eq!(lease_of(&table, 1), (R, EPOCH + 1, false));
    assert_eq!(grant(&table, 2, RH), RH);
    assert_eq!(lease_of(&table, 2), (RH, EPOCH + 2, false));
    assert_eq!(grant(&table, 2, RW), RH, "HANDLE_CACHING would be lost");
    assert_eq!(enter(&table, 3, &mut notices), Ok(Admission::Entered));
    assert_eq!(grant(&table, 2, RWH), RH, "the lease gets not all rights");
    assert_eq!(lease_of(&table, 2), (RH, EPOCH + 2, false));
}

#[test]
fn a_break_that_must_go_further_goes_in_steps() {
    let table = FileTable::default();
    let mut notices = Notices::new();
    let first = enter_as(&table, 1, LEASE, false, &mut notices);
    assert_eq!(first, Ok(Admission::Entered));
    assert_eq!(grant(&table, 1, RWH), RWH);
    assert_eq!(
        enter(&table, 2, &mut notices),
        Ok(Admission::Wait(DEADLINE))
    );
    assert_eq!(notices, lease_broken(1, 2, RWH, RH));
    let mut notices = Notices::new();
    let holder = HolderId::Open(file(3));
    let overwrite = enter_as(&table, 3, holder, true, &mut notices);
    assert_eq!(overwrite, Ok(Admission::Wait(DEADLINE)));
    assert_eq!(notices, woken(&[]));
    assert_eq!(acknowledge_lease(&table, RH, &mut notices), Ok(()));
    let mut expected = lease_broken(1, 2, RH, R);
    expected.extend(woken(&[2, 3]));
    assert_eq!(notices, expected);
    let mut notices = Notices::new();
    assert_eq!(acknowledge_lease(&table, R, &mut notices), Ok(()));
    assert_eq!(notices, lease_broken(1, 2, R, NONE));
    assert_eq!(lease_of(&table, 1), (NONE, EPOCH + 2, false));
}

#[test]
fn a_lease_without_an_acknowledgment_loses_all_rights_and_stays() {
    let table = FileTable::default();
    let mut notices = Notices::new();
    let first = enter_as(&table, 1, LEASE, false, &mut notices);
    assert_eq!(first, Ok(Admission::Entered));
    assert_eq!(grant(&table, 1, RWH), RWH);
    assert_eq!(
        enter(&table, 2, &mut notices),
        Ok(Admission::Wait(DEADLINE))
    );
    let more = acknowledge_lease(&table, RWH, &mut notices);
    assert_eq!(more, Err(Status::REQUEST_NOT_ACCEPTED));
    let mut notices = Notices::new();
    assert_eq!(table.expire(KEY, DEADLINE, &mut notices), None);
    assert_eq!(notices, woken(&[2]));
    let late = acknowledge_lease(&table, RH, &mut notices);
    assert_eq!(late, Err(Status::UNSUCCESSFUL));
    assert_eq!(lease_of(&table, 1).0, NONE);
    // No other open is in the table.
    assert_eq!(grant(&table, 1, RWH), RWH);
}

#[test]
fn a_lease_key_belongs_to_one_stream() {
    let table = FileTable::default();
    let mut notices = Notices::new();
    let first = enter_as(&table, 1, LEASE, false, &mut notices);
    assert_eq!(first, Ok(Admission::Entered));
    let other = FileKey { file: 3, ..KEY };
    let record = |slot| OpenRecord {
        file: file(slot),
        sharing: Sharing {
            access: AccessMask::FILE_READ_DATA,
            share: ShareAccess::READ,
            is_posix: false,
        },
        path: SharePath::from_trusted("b"),
        delete_on_close: false,
        is_stat_only: false,
        holder: LEASE,
        parent_lease: None,
        target: None,
    };
    let attempt = OpenAttempt {
        checked: record(2).sharing,
        overwrites: false,
        is_retry: false,
        removals: 0,
        lease: Some(LEASE_ID),
        wait: BreakWait {
            waiter: waiter(2),
            now: Instant::default(),
            deadline: DEADLINE,
        },
    };
    let refused = table.enter(other, record(2), &attempt, &mut notices);
    assert_eq!(refused, Err(Status::INVALID_PARAMETER));
    assert!(!table.is_open(other));
    close(&table, 1);
    let entered = table.enter(other, record(2), &attempt, &mut notices);
    assert_eq!(entered, Ok(Admission::Entered));
}

#[test]
fn leases_have_limits() {
    let limits = Limits {
        leases_per_client: 1,
        leases: 2,
        ..Limits::default()
    };
    let table = FileTable::default();
    let entered = enter_as(&table, 1, LEASE, false, &mut Notices::new());
    assert_eq!(entered, Ok(Admission::Entered));
    let of = |client: u8, key: u8| LeaseId {
        client: Guid([client; 16]),
        key: Guid([key; 16]),
    };
    assert!(table.has_space_for_lease(LEASE_ID, &limits), "it exists");
    assert!(!table.has_space_for_lease(of(1, 3), &limits));
    assert!(table.has_space_for_lease(of(2, 3), &limits));
    let holder = HolderId::Lease(of(2, 3));
    let entered = enter_as(&table, 2, holder, false, &mut Notices::new());
    assert_eq!(entered, Ok(Admission::Entered));
    assert!(!table.has_space_for_lease(of(3, 3), &limits));
    close(&table, 1);
    assert!(table.has_space_for_lease(of(1, 3), &limits));
}
