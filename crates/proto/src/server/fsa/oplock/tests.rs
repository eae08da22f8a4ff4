use alloc::vec;

use wire::access::ShareAccess;
use wire::{FileId, SessionId};

use super::*;
use crate::path::SharePath;
use crate::server::fsa::ShareId;

const KEY: FileKey = FileKey { volume: 1, file: 2 };
const DEADLINE: Instant = Instant(core::time::Duration::from_secs(35));

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

fn holder(number: u64) -> Holder {
    Holder {
        connection: ConnectionId(number),
        session: SessionId(number),
        file_id: FileId {
            persistent: number,
            volatile: number,
        },
    }
}

/// Open number `slot` comes, of a connection of that number.
fn enter(table: &FileTable, slot: u64, mail: &mut Mail) -> Result<Entrance, Status> {
    let checked = Sharing {
        access: AccessMask::FILE_READ_DATA,
        share: ShareAccess::READ,
    };
    let record = OpenRecord {
        file: file(slot),
        sharing: checked,
        path: SharePath::from_trusted("a"),
        delete_on_close: false,
        held: Held::nothing(false),
    };
    let arrival = Arrival {
        checked,
        overwrites: false,
        patience: Patience {
            waiter: waiter(slot),
            now: Instant::default(),
            deadline: DEADLINE,
        },
    };
    table.enter(KEY, record, &arrival, mail)
}

fn grant(table: &FileTable, slot: u64, level: OplockLevel) -> OplockLevel {
    table.grant(KEY, file(slot), level, &holder(slot)).level
}

fn woken(numbers: &[u64]) -> Mail {
    let notice = |number: &u64| (ConnectionId(*number), Notice::OplockBroken(OpId(*number)));
    numbers.iter().map(notice).collect()
}

#[test]
fn what_gives_way_to_whom() {
    let breaking = |was_batch| State::Breaking {
        was_batch,
        to: OplockLevel::II,
        deadline: DEADLINE,
    };
    let to_two = Answer::Break(OplockLevel::II);
    let to_none = Answer::Break(OplockLevel::NONE);
    let stay = Answer::Stay;
    let rows = [
        // To an open, an overwrite, an open and an overwrite that others do not share.
        (State::None, [stay, stay, stay, stay]),
        (State::LevelTwo, [stay, Answer::End, stay, stay]),
        (State::Exclusive, [to_two, to_none, stay, stay]),
        (State::Batch, [to_two, to_none, to_two, to_none]),
        (breaking(false), [Answer::Wait, Answer::Wait, stay, stay]),
        (breaking(true), [Answer::Wait; 4]),
    ];
    for (state, row) in rows {
        let columns = [(false, false), (false, true), (true, false), (true, true)];
        for ((violates, overwrites), answer) in columns.into_iter().zip(row) {
            assert_eq!(state.answer(violates, overwrites), answer, "{state:?}");
        }
    }
}

#[test]
fn everybody_who_waits_is_woken_once() {
    let table = FileTable::default();
    let mut mail = Mail::new();
    assert_eq!(enter(&table, 1, &mut mail), Ok(Entrance::Entered));
    assert_eq!(grant(&table, 1, OplockLevel::BATCH), OplockLevel::BATCH);
    for slot in [2, 3, 4] {
        assert_eq!(enter(&table, slot, &mut mail), Ok(Entrance::Wait(DEADLINE)));
    }
    // The holder is told once.
    let told = Notice::BreakOplock {
        session: SessionId(1),
        file_id: holder(1).file_id,
        level: OplockLevel::II,
    };
    assert_eq!(mail, vec![(ConnectionId(1), told)]);
    table.forget_waiter(KEY, waiter(3));
    assert_eq!(table.waiters(), 2);
    let mut mail = Mail::new();
    let kept = table.acknowledge(KEY, file(1), OplockLevel::II, &mut mail);
    assert_eq!(kept, Ok(OplockLevel::II));
    assert_eq!(mail, woken(&[2, 4]));
    assert_eq!(table.waiters(), 0);
    assert_eq!(table.leave(KEY, file(1)).mail, woken(&[]));
}

#[test]
fn a_holder_that_leaves_or_has_had_its_time_wakes_who_waits() {
    for expires in [false, true] {
        let table = FileTable::default();
        let mut mail = Mail::new();
        assert_eq!(enter(&table, 1, &mut mail), Ok(Entrance::Entered));
        grant(&table, 1, OplockLevel::EXCLUSIVE);
        assert_eq!(enter(&table, 2, &mut mail), Ok(Entrance::Wait(DEADLINE)));
        let mut mail = Mail::new();
        if expires {
            let early = Instant::default();
            assert_eq!(table.expire(KEY, early, &mut mail), Some(DEADLINE));
            assert_eq!(mail, woken(&[]));
            assert_eq!(table.expire(KEY, DEADLINE, &mut mail), None);
        } else {
            mail = table.leave(KEY, file(1)).mail;
        }
        assert_eq!(mail, woken(&[2]));
        assert_eq!(table.waiters(), 0);
    }
}

#[test]
fn a_write_ends_level_two_and_nothing_else() {
    let table = FileTable::default();
    let mut mail = Mail::new();
    for slot in [1, 2, 3] {
        assert_eq!(enter(&table, slot, &mut mail), Ok(Entrance::Entered));
    }
    grant(&table, 1, OplockLevel::II);
    let granted = table.grant(KEY, file(2), OplockLevel::BATCH, &holder(2));
    let (level, has_readers) = (granted.level, granted.has_readers);
    assert_eq!(level, OplockLevel::II);
    assert!(has_readers.load(Ordering::SeqCst));
    table.end_level_two(KEY, &mut mail);
    assert!(!has_readers.load(Ordering::SeqCst));
    let told: Vec<ConnectionId> = mail.iter().map(|(connection, _)| *connection).collect();
    assert_eq!(told, [ConnectionId(1), ConnectionId(2)]);
    let mut mail = Mail::new();
    table.end_level_two(KEY, &mut mail);
    assert_eq!(mail, woken(&[]));
}
