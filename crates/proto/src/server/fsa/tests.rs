use wire::access::{AccessMask, ShareAccess};

use super::oplock::Patience;
use super::*;
use crate::id::{ConnectionId, OpId};
use crate::time::Instant;

const KEY: FileKey = FileKey { volume: 1, file: 2 };

fn file(slot: u64) -> LocalOpen {
    LocalOpen {
        share: ShareId(0),
        slot,
    }
}

fn everything() -> Sharing {
    Sharing {
        access: AccessMask::FILE_READ_DATA | AccessMask::FILE_WRITE_DATA | AccessMask::DELETE,
        share: ShareAccess::READ | ShareAccess::WRITE | ShareAccess::DELETE,
    }
}

fn arrival(checked: Sharing) -> Arrival {
    Arrival {
        checked,
        overwrites: false,
        patience: Patience {
            waiter: Waiter {
                connection: ConnectionId(1),
                op: OpId(1),
            },
            now: Instant::default(),
            deadline: Instant::default(),
        },
    }
}

fn enter_as(
    table: &FileTable,
    slot: u64,
    path: &str,
    delete_on_close: bool,
) -> Result<Entrance, Status> {
    let record = OpenRecord {
        file: file(slot),
        sharing: everything(),
        path: SharePath::from_trusted(path),
        delete_on_close,
        held: Held::default(),
    };
    table.enter(KEY, record, &arrival(everything()), &mut Mail::new())
}

fn enter(table: &FileTable, slot: u64) -> Result<Entrance, Status> {
    enter_as(table, slot, "a", false)
}

fn closes(slots: &[u64]) -> Departure {
    Departure {
        unlink: None,
        close: slots.iter().copied().map(file).collect(),
        mail: Mail::new(),
    }
}

#[test]
fn a_file_that_is_to_go_lets_nobody_in_and_goes_with_its_last_open() {
    let table = FileTable::default();
    enter(&table, 1).expect("nobody is there");
    enter(&table, 2).expect("both share");
    table.set_delete_pending(KEY, file(1));
    assert_eq!(enter(&table, 3), Err(Status::DELETE_PENDING));
    // The open that asked is parked, and does the work when the last one goes.
    assert_eq!(table.leave(KEY, file(1)), closes(&[]));
    let departure = table.leave(KEY, file(2));
    assert_eq!(
        departure.unlink,
        Some((file(1), SharePath::from_trusted("a")))
    );
    assert_eq!(departure.close, [file(2), file(1)]);
    assert_eq!(enter(&table, 3), Err(Status::DELETE_PENDING));
    table.forget(KEY);
    enter(&table, 3).expect("the name was taken again, or not removed");
}

#[test]
fn delete_on_close_counts_from_the_close_on() {
    let table = FileTable::default();
    enter_as(&table, 1, "a", true).expect("nobody is there");
    enter(&table, 2).expect("nothing is pending yet");
    assert!(!table.is_delete_pending(KEY));
    assert_eq!(table.leave(KEY, file(1)), closes(&[]));
    assert!(table.is_delete_pending(KEY));
    assert_eq!(enter(&table, 3), Err(Status::DELETE_PENDING));
    // The other one can still save the file; then the parked open is of no use.
    assert_eq!(table.clear_delete_pending(KEY), Some(file(1)));
    assert_eq!(table.leave(KEY, file(2)), closes(&[2]));
    assert!(!table.is_open(KEY));
}

#[test]
fn a_pending_delete_that_is_taken_back_leaves_the_file() {
    let table = FileTable::default();
    enter(&table, 1).expect("nobody is there");
    table.set_delete_pending(KEY, file(1));
    assert_eq!(table.clear_delete_pending(KEY), None);
    assert_eq!(table.leave(KEY, file(1)), closes(&[1]));
}

#[test]
fn the_name_that_is_removed_is_the_one_the_file_has_by_then() {
    let table = FileTable::default();
    enter_as(&table, 1, "a", true).expect("nobody is there");
    enter_as(&table, 2, "link", false).expect("both share");
    let (from, to) = (SharePath::from_trusted("a"), SharePath::from_trusted("b"));
    table.rename(KEY, ShareId(0), &from, &to);
    assert_eq!(table.path(KEY, file(1)), Some(to.clone()));
    assert_eq!(
        table.path(KEY, file(2)),
        Some(SharePath::from_trusted("link"))
    );
    table.leave(KEY, file(2));
    assert_eq!(table.leave(KEY, file(1)).unlink, Some((file(1), to)));
}

#[test]
fn an_open_that_loses_leaves_nothing_behind() {
    let table = FileTable::default();
    let deaf = Sharing {
        share: ShareAccess::NONE,
        ..everything()
    };
    enter(&table, 1).expect("nobody is there");
    let record = OpenRecord {
        file: file(2),
        sharing: deaf,
        path: SharePath::from_trusted("a"),
        delete_on_close: true,
        held: Held::default(),
    };
    assert_eq!(
        table.enter(KEY, record, &arrival(deaf), &mut Mail::new()),
        Err(Status::SHARING_VIOLATION)
    );
    assert_eq!(table.leave(KEY, file(1)), closes(&[1]));
    assert!(!table.is_open(KEY));
}

#[test]
fn what_is_open_below_a_directory_is_found_by_its_name() {
    let table = FileTable::default();
    enter_as(&table, 1, "a/b/c", false).expect("nobody is there");
    let below = |path| table.is_open_below(ShareId(0), &SharePath::from_trusted(path));
    assert!(below("a") && below("a/b"));
    assert!(!below("a/b/c") && !below("a/bc"));
    assert!(!table.is_open_below(ShareId(1), &SharePath::from_trusted("a")));
}

#[test]
fn opens_are_described_that_are_there() {
    let table = FileTable::default();
    for slot in 1..=3 {
        enter(&table, slot).expect("everybody shares");
    }
    let other = FileKey { volume: 1, file: 3 };
    let wanted = [
        (KEY, file(3)),
        (other, file(2)),
        (KEY, file(1)),
        (KEY, file(9)),
    ];
    let described = table.describe(wanted.into_iter());
    let there: Vec<_> = described.keys().copied().collect();
    assert_eq!(there, [file(1), file(3)]);
    assert_eq!(described[&file(1)].path.as_str(), "a");
    assert_eq!(described[&file(1)].sharing, everything());
}
