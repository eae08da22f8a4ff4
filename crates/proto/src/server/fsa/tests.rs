use wire::access::{AccessMask, ShareAccess};

use super::caching::BreakWait;
use super::*;
use crate::file::StreamId;
use crate::id::{ConnectionId, OpId};
use crate::time::Instant;

const KEY: FileKey = FileKey {
    volume: 1,
    file: 2,
    stream: StreamId::DATA,
};

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
        is_posix: false,
    }
}

fn attempt(checked: Sharing) -> OpenAttempt {
    OpenAttempt {
        checked,
        overwrites: false,
        is_retry: false,
        removals: 0,
        lease: None,
        wait: BreakWait {
            waiter: Waiter {
                connection: ConnectionId(1),
                op: OpId(1),
            },
            now: Instant::default(),
            deadline: Instant::default(),
        },
    }
}

fn record(slot: u64, path: &str) -> OpenRecord {
    OpenRecord {
        file: file(slot),
        sharing: everything(),
        path: SharePath::from_trusted(path),
        delete_on_close: false,
        is_stat_only: false,
        holder: HolderId::Open(file(slot)),
        parent_lease: None,
        target: None,
    }
}

fn enter_as(
    table: &FileTable,
    slot: u64,
    path: &str,
    delete_on_close: bool,
) -> Result<Admission, Status> {
    let record = OpenRecord {
        delete_on_close,
        ..record(slot, path)
    };
    table.enter(KEY, record, &attempt(everything()), &mut Notices::new())
}

fn enter(table: &FileTable, slot: u64) -> Result<Admission, Status> {
    enter_as(table, slot, "a", false)
}

fn close(table: &FileTable, slot: u64) -> Close {
    close_stream(table, KEY, slot)
}

fn close_stream(table: &FileTable, key: FileKey, slot: u64) -> Close {
    let close = table.close(key, file(slot), Instant::default());
    Close {
        entry: None,
        ..close
    }
}

fn closes(slots: &[u64]) -> Close {
    Close {
        unlink: None,
        close: slots.iter().copied().map(file).collect(),
        ..Close::default()
    }
}

#[test]
fn a_delete_pending_file_refuses_opens_and_is_deleted_with_its_last_open() {
    let table = FileTable::default();
    enter(&table, 1).expect("the file has no other open");
    enter(&table, 2).expect("both share");
    table.set_delete_pending(KEY, file(1), false);
    assert_eq!(enter(&table, 3), Err(Status::DELETE_PENDING));
    // The open that asked is parked, and does the work when the last one goes.
    assert_eq!(close(&table, 1), closes(&[]));
    let close = close(&table, 2);
    assert_eq!(close.unlink, Some((file(1), SharePath::from_trusted("a"))));
    assert_eq!(close.close, [file(2), file(1)]);
    assert_eq!(enter(&table, 3), Err(Status::DELETE_PENDING));
    table.forget(KEY, file(1), &SharePath::from_trusted("a"));
    enter(&table, 3).expect("the name was taken again, or not removed");
}

#[test]
fn delete_on_close_counts_from_the_close_on() {
    let table = FileTable::default();
    enter_as(&table, 1, "a", true).expect("the file has no other open");
    enter(&table, 2).expect("nothing is pending yet");
    assert!(!table.has_delete_pending(KEY));
    assert_eq!(close(&table, 1), closes(&[]));
    assert!(table.has_delete_pending(KEY));
    assert_eq!(enter(&table, 3), Err(Status::DELETE_PENDING));
    // The other one can still save the file; then the parked open is of no use.
    assert_eq!(table.clear_delete_pending(KEY, file(2)), Some(file(1)));
    assert_eq!(close(&table, 2), closes(&[2]));
    assert!(!table.is_open(KEY));
}

#[test]
fn a_pending_delete_that_is_taken_back_leaves_the_file() {
    let table = FileTable::default();
    enter(&table, 1).expect("the file has no other open");
    table.set_delete_pending(KEY, file(1), false);
    assert_eq!(table.clear_delete_pending(KEY, file(1)), None);
    assert_eq!(close(&table, 1), closes(&[1]));
}

#[test]
fn with_posix_semantics_the_name_goes_with_the_open_that_asked() {
    let table = FileTable::default();
    enter(&table, 1).expect("the file has no other open");
    enter(&table, 2).expect("both share");
    table.set_delete_pending(KEY, file(1), true);
    let first = close(&table, 1);
    assert_eq!(first.unlink, Some((file(1), SharePath::from_trusted("a"))));
    assert_eq!(first.close, [file(1)]);
    assert_eq!(enter(&table, 3), Err(Status::DELETE_PENDING));
    table.forget(KEY, file(1), &SharePath::from_trusted("a"));
    assert!(table.has_delete_pending(KEY));
    assert_eq!(table.clear_delete_pending(KEY, file(2)), None);
    assert!(table.has_delete_pending(KEY), "the name is gone");
    enter_as(&table, 3, "link", false).expect("another name leads to the file");
    assert_eq!(close(&table, 3), closes(&[3]));
    assert_eq!(close(&table, 2), closes(&[2]));
    assert!(!table.is_open(KEY));
}

/// Enters an open of the SMB3 POSIX extensions, which shares nothing.
fn enter_posix(table: &FileTable, slot: u64, path: &str) -> Result<Admission, Status> {
    let sharing = Sharing {
        share: ShareAccess::NONE,
        is_posix: true,
        ..everything()
    };
    let record = OpenRecord {
        sharing,
        delete_on_close: true,
        ..record(slot, path)
    };
    let attempt = OpenAttempt {
        removals: table.removals(),
        ..attempt(sharing)
    };
    table.enter(KEY, record, &attempt, &mut Notices::new())
}

#[test]
fn an_open_that_began_before_the_removal_of_its_name_is_not_entered() {
    let table = FileTable::default();
    let mut early = attempt(everything());
    enter(&table, 1).expect("the file has no other open");
    table.set_delete_pending(KEY, file(1), false);
    let (removing, path) = close(&table, 1).unlink.expect("the last open");
    table.forget(KEY, removing, &path);
    let enter = |attempt: &OpenAttempt| {
        let record = record(2, "a");
        table.enter(KEY, record, attempt, &mut Notices::new())
    };
    assert_eq!(enter(&early), Ok(Admission::Removed));
    assert!(!table.is_open(KEY));
    early.removals = table.removals();
    assert_eq!(enter(&early), Ok(Admission::Entered));
}

#[test]
fn opens_of_the_posix_extensions_do_not_keep_a_name() {
    let table = FileTable::default();
    let a = SharePath::from_trusted("a");
    for (slot, path) in [(1, "a"), (2, "a"), (3, "link")] {
        enter_posix(&table, slot, path).expect("they share everything");
    }
    let first = close(&table, 1);
    assert_eq!(first.unlink, Some((file(1), a.clone())));
    assert_eq!(first.close, [file(1)]);
    table.forget(KEY, file(1), &a);
    // The other name of the file is removed too.
    let link = SharePath::from_trusted("link");
    assert_eq!(close(&table, 3).unlink, Some((file(3), link.clone())));
    table.forget(KEY, file(3), &link);
    assert!(table.is_open(KEY));
}

#[test]
fn a_name_that_is_deleted_many_times_has_one_mark() {
    let table = FileTable::default();
    let a = SharePath::from_trusted("a");
    enter_posix(&table, 1, "a").expect("the file is not open");
    for slot in 2..100 {
        enter_posix(&table, slot, "a").expect("another link has the name again");
        table.set_delete_pending(KEY, file(slot), true);
        assert!(close(&table, slot).unlink.is_some());
        table.forget(KEY, file(slot), &a);
    }
    assert_eq!(
        table.files.lock().file(KEY).map(|file| file.deletes.len()),
        Some(1)
    );
    // The open has FILE_DELETE_ON_CLOSE too.
    assert_eq!(close(&table, 1).unlink, Some((file(1), a.clone())));
    table.forget(KEY, file(1), &a);
    assert!(!table.is_open(KEY));
}

#[test]
fn an_open_of_another_client_keeps_the_name() {
    let table = FileTable::default();
    enter(&table, 1).expect("the file has no other open");
    let deaf = enter_posix(&table, 2, "a");
    assert_eq!(deaf, Err(Status::SHARING_VIOLATION));
    let table = FileTable::default();
    enter_as(&table, 1, "a", true).expect("the file has no other open");
    let sharing = Sharing {
        is_posix: true,
        ..everything()
    };
    for slot in [2, 3] {
        let record = OpenRecord {
            sharing,
            ..record(slot, "a")
        };
        let entered = table.enter(KEY, record, &attempt(sharing), &mut Notices::new());
        assert_eq!(entered, Ok(Admission::Entered));
    }
    table.set_delete_pending(KEY, file(2), false);
    assert_eq!(close(&table, 2), closes(&[]), "parked");
    assert!(table.is_open_to_others(KEY));
    // Only an open of the extensions is left: the name goes now.
    let close = close(&table, 1);
    assert_eq!(close.unlink, Some((file(2), SharePath::from_trusted("a"))));
    assert_eq!(close.close, [file(1), file(2)]);
    assert!(!table.is_open_to_others(KEY));
}

#[test]
fn with_posix_semantics_the_last_open_removes_the_name_once() {
    let table = FileTable::default();
    enter(&table, 1).expect("the file has no other open");
    table.set_delete_pending(KEY, file(1), true);
    let only = close(&table, 1);
    assert_eq!(only.unlink, Some((file(1), SharePath::from_trusted("a"))));
    assert_eq!(only.close, [file(1)]);
    table.forget(KEY, file(1), &SharePath::from_trusted("a"));
    assert!(!table.is_open(KEY));
}

#[test]
fn the_name_that_is_removed_is_the_one_the_file_has_by_then() {
    let table = FileTable::default();
    enter_as(&table, 1, "a", true).expect("the file has no other open");
    enter_as(&table, 2, "link", false).expect("both share");
    let (from, to) = (SharePath::from_trusted("a"), SharePath::from_trusted("b"));
    table.rename(KEY, ShareId(0), &from, &to);
    assert_eq!(table.path(KEY, file(1)), Some(to.clone()));
    assert_eq!(
        table.path(KEY, file(2)),
        Some(SharePath::from_trusted("link"))
    );
    close(&table, 2);
    assert_eq!(close(&table, 1).unlink, Some((file(1), to)));
}

#[test]
fn an_open_that_loses_leaves_nothing_behind() {
    let table = FileTable::default();
    let deaf = Sharing {
        share: ShareAccess::NONE,
        ..everything()
    };
    enter(&table, 1).expect("the file has no other open");
    let record = OpenRecord {
        sharing: deaf,
        delete_on_close: true,
        ..record(2, "a")
    };
    assert_eq!(
        table.enter(KEY, record, &attempt(deaf), &mut Notices::new()),
        Err(Status::SHARING_VIOLATION)
    );
    assert_eq!(close(&table, 1), closes(&[1]));
    assert!(!table.is_open(KEY));
}

#[test]
fn what_is_open_below_a_directory_is_found_by_its_name() {
    let table = FileTable::default();
    enter_as(&table, 1, "a/b/c", false).expect("the file has no other open");
    let below = |path| {
        !table
            .opens_below(ShareId(0), &SharePath::from_trusted(path), false)
            .is_empty()
    };
    assert!(below("a") && below("a/b"));
    assert!(!below("a/b/c") && !below("a/bc"));
    assert!(
        table
            .opens_below(ShareId(1), &SharePath::from_trusted("a"), false)
            .is_empty()
    );
}

#[test]
fn opens_are_described_that_are_there() {
    let table = FileTable::default();
    for slot in 1..=3 {
        enter(&table, slot).expect("all opens share all access");
    }
    let other = FileKey { file: 3, ..KEY };
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

const STREAM: FileKey = FileKey {
    stream: StreamId(7),
    ..KEY
};

fn enter_alone(table: &FileTable, key: FileKey, slot: u64) -> Result<Admission, Status> {
    let exclusive = Sharing {
        share: ShareAccess::NONE,
        ..everything()
    };
    let record = OpenRecord {
        sharing: exclusive,
        ..record(slot, "a")
    };
    table.enter(key, record, &attempt(exclusive), &mut Notices::new())
}

#[test]
fn share_modes_are_those_of_a_stream() {
    let table = FileTable::default();
    assert_eq!(enter_alone(&table, KEY, 1), Ok(Admission::Entered));
    assert_eq!(enter_alone(&table, STREAM, 2), Ok(Admission::Entered));
    for key in [KEY, STREAM] {
        assert_eq!(enter_alone(&table, key, 3), Err(Status::SHARING_VIOLATION));
    }
    assert_eq!(close_stream(&table, STREAM, 2), closes(&[2]));
    assert_eq!(enter_alone(&table, STREAM, 3), Ok(Admission::Entered));
    assert_eq!(
        table.path(KEY, file(3)),
        None,
        "it is an open of the stream"
    );
}

#[test]
fn a_deletion_concerns_all_streams_of_a_file() {
    let table = FileTable::default();
    enter(&table, 1).expect("the file is not open");
    enter_alone(&table, STREAM, 2).expect("the stream is not open");
    table.set_delete_pending(KEY, file(1), false);
    for (key, open) in [(KEY, 1), (STREAM, 2)] {
        assert!(table.is_delete_pending(key, file(open)));
        assert_eq!(enter_alone(&table, key, 3), Err(Status::DELETE_PENDING));
    }
    // The file exists until the last open of its last stream is closed.
    assert_eq!(close(&table, 1), closes(&[]));
    assert!(table.is_open(KEY));
    let close = close_stream(&table, STREAM, 2);
    let path = SharePath::from_trusted("a");
    assert_eq!(close.unlink, Some((file(1), path)));
    assert_eq!(close.close, [file(2), file(1)]);
    table.forget(STREAM, file(1), &SharePath::from_trusted("a"));
    assert!(!table.is_open(KEY));
}

#[test]
fn a_deletion_concerns_one_name_of_a_file() {
    let table = FileTable::default();
    enter_as(&table, 1, "a", false).expect("the file is not open");
    enter_as(&table, 2, "link", false).expect("both share");
    table.set_delete_pending(KEY, file(1), false);
    assert!(table.is_delete_pending(KEY, file(1)) && !table.is_delete_pending(KEY, file(2)));
    assert_eq!(table.names_to_delete(KEY), 1);
    assert_eq!(enter_as(&table, 3, "a", false), Err(Status::DELETE_PENDING));
    enter_as(&table, 3, "link", false).expect("the other name stays");
    assert_eq!(close(&table, 3), closes(&[3]));
    let first = close(&table, 1);
    assert_eq!(first.unlink, Some((file(1), SharePath::from_trusted("a"))));
    assert_eq!(first.close, [file(1)]);
    assert_eq!(enter_as(&table, 3, "a", false), Err(Status::DELETE_PENDING));
    table.forget(KEY, file(1), &SharePath::from_trusted("a"));
    assert_eq!(table.names_to_delete(KEY), 0);
    enter_as(&table, 3, "a", false).expect("the name may exist again");
    assert_eq!(close(&table, 3), closes(&[3]));
    assert_eq!(close(&table, 2), closes(&[2]));
    assert!(!table.is_open(KEY));
}

#[test]
fn two_names_of_a_file_are_deleted_apart() {
    let table = FileTable::default();
    for (slot, name) in [(1, "a"), (2, "a"), (3, "link")] {
        enter_as(&table, slot, name, false).expect("all share");
    }
    table.set_delete_pending(KEY, file(1), false);
    table.set_delete_pending(KEY, file(3), true);
    assert_eq!(table.names_to_delete(KEY), 2);
    assert_eq!(close(&table, 1), closes(&[]), "the open is parked");
    let link = close(&table, 3);
    assert_eq!(
        link.unlink,
        Some((file(3), SharePath::from_trusted("link")))
    );
    table.forget(KEY, file(3), &SharePath::from_trusted("link"));
    let last = close(&table, 2);
    assert_eq!(last.unlink, Some((file(1), SharePath::from_trusted("a"))));
    assert_eq!(last.close, [file(2), file(1)]);
    assert!(table.is_open(KEY), "the name is being removed");
    table.forget(KEY, file(1), &SharePath::from_trusted("a"));
    assert!(!table.is_open(KEY));
}

#[test]
fn opens_through_another_share_keep_a_name() {
    let table = FileTable::default();
    enter(&table, 1).expect("the file is not open");
    let other = LocalOpen {
        share: ShareId(1),
        ..file(2)
    };
    let record = OpenRecord {
        file: other,
        ..record(2, "below/a")
    };
    table
        .enter(KEY, record, &attempt(everything()), &mut Notices::new())
        .expect("both share");
    table.set_delete_pending(KEY, file(1), false);
    assert!(table.is_delete_pending(KEY, other));
    assert_eq!(close(&table, 1), closes(&[]), "the open is parked");
}

#[test]
fn a_rename_concerns_all_streams_of_a_file() {
    let table = FileTable::default();
    enter(&table, 1).expect("the file is not open");
    enter_alone(&table, STREAM, 2).expect("the stream is not open");
    let (from, to) = (SharePath::from_trusted("a"), SharePath::from_trusted("b"));
    table.rename(KEY, ShareId(0), &from, &to);
    assert_eq!(table.path(KEY, file(1)), Some(to.clone()));
    assert_eq!(table.path(STREAM, file(2)), Some(to));
}

/// The path of a named stream.
fn of_stream() -> SharePath {
    let name = StreamName::new("s");
    SharePath::from_trusted("a").with_stream(name)
}

#[test]
fn a_named_stream_is_deleted_with_its_last_open() {
    let table = FileTable::default();
    let sharing = |table: &FileTable, slot| {
        let record = record(slot, "a");
        table.enter(STREAM, record, &attempt(everything()), &mut Notices::new())
    };
    enter(&table, 1).expect("the file is not open");
    sharing(&table, 2).expect("the stream is not open");
    sharing(&table, 3).expect("both share");
    table.set_delete_pending(STREAM, file(2), false);
    assert!(table.is_delete_pending(STREAM, file(2)));
    assert!(!table.is_delete_pending(KEY, file(1)));
    assert_eq!(sharing(&table, 4), Err(Status::DELETE_PENDING));
    enter(&table, 4).expect("the file stays");
    assert_eq!(close_stream(&table, STREAM, 2), closes(&[]));
    let close_last = close_stream(&table, STREAM, 3);
    assert_eq!(close_last.close, [file(3), file(2)]);
    assert!(close_last.unlink.is_some());
    assert_eq!(sharing(&table, 5), Err(Status::DELETE_PENDING));
    table.forget(STREAM, file(2), &of_stream());
    sharing(&table, 5).expect("the stream is gone, or was not removed");
    assert!(!table.has_delete_pending(STREAM));
}

#[test]
fn a_deleted_file_takes_its_deleted_streams_along() {
    let table = FileTable::default();
    enter(&table, 1).expect("the file is not open");
    let record = record(2, "a");
    table
        .enter(STREAM, record, &attempt(everything()), &mut Notices::new())
        .expect("the stream is not open");
    table.set_delete_pending(STREAM, file(2), false);
    table.set_delete_pending(KEY, file(1), false);
    assert_eq!(close(&table, 1), closes(&[]));
    let close = close_stream(&table, STREAM, 2);
    let path = SharePath::from_trusted("a");
    assert_eq!(
        close.unlink,
        Some((file(1), path)),
        "the file, not the stream"
    );
    table.forget(STREAM, file(2), &of_stream());
    assert!(table.is_open(KEY), "the name is still being removed");
    table.forget(STREAM, file(1), &SharePath::from_trusted("a"));
    assert!(!table.is_open(KEY));
}

#[test]
fn an_open_that_deletes_needs_streams_that_share_deletion() {
    let table = FileTable::default();
    enter_alone(&table, STREAM, 1).expect("the stream is not open");
    assert_eq!(enter(&table, 2), Err(Status::SHARING_VIOLATION));
    close_stream(&table, STREAM, 1);
    enter(&table, 2).expect("the stream is closed");
}
