//! DOS attributes and times.

use proto::file::{BasicChanges, Existing, FileOp, KindWanted, OpenPlan, Operation};
use wire::access::{AccessMask, FileAttributes};
use wire::{FileTime, Status};

use crate::share::Share;

fn attributes(attributes: FileAttributes) -> BasicChanges {
    BasicChanges {
        attributes: Some(attributes),
        ..BasicChanges::default()
    }
}

pub(crate) fn a_new_file_wants_to_be_archived(share: &Share) {
    let plan = share.plan("f", Existing::Create, KindWanted::File);
    let opened = share.open_plan(OpenPlan {
        attributes: FileAttributes::HIDDEN,
        ..plan
    });
    let shown = opened.expect("a new file").metadata.attributes;
    assert_eq!(shown, FileAttributes::HIDDEN | FileAttributes::ARCHIVE);
    let again = share.open("f").expect("the file").metadata.attributes;
    assert_eq!(again, shown);
    let directory = share.directory("d");
    let shown = share.stat(directory).expect("metadata").attributes;
    assert_eq!(shown, FileAttributes::DIRECTORY);
}

pub(crate) fn attributes_and_times_are_stored(share: &Share) {
    let file = share.file("f", b"");
    let second = FileTime(10_000_000);
    let time = |n| FileTime(131_000_000_000_000_000 + n * second.0 + 1_234_567);
    let changes = BasicChanges {
        created: Some(time(1)),
        accessed: Some(time(2)),
        written: Some(time(3)),
        changed: None,
        attributes: Some(FileAttributes::SYSTEM | FileAttributes::HIDDEN),
    };
    share.set_basic(file, changes).expect("set");
    share.close(file);
    let metadata = share.open("f").expect("the file").metadata;
    assert_eq!(metadata.created, time(1));
    assert_eq!(metadata.accessed, time(2));
    assert_eq!(metadata.written, time(3));
    assert_eq!(
        metadata.attributes,
        FileAttributes::SYSTEM | FileAttributes::HIDDEN
    );
    let file = share.open("f").expect("the file").file;
    let only = BasicChanges {
        written: Some(time(9)),
        ..BasicChanges::default()
    };
    let metadata = share.set_basic(file, only).expect("set");
    assert_eq!((metadata.created, metadata.accessed), (time(1), time(2)));
    assert_eq!(metadata.written, time(9));
    assert_eq!(
        metadata.attributes,
        FileAttributes::SYSTEM | FileAttributes::HIDDEN
    );
}

pub(crate) fn a_name_with_a_dot_is_hidden(share: &Share) {
    let metadata = share.create(".profile").expect("a new file").metadata;
    assert!(metadata.attributes.contains(FileAttributes::HIDDEN));
    let plain = share.create("profile").expect("a new file").metadata;
    assert!(!plain.attributes.contains(FileAttributes::HIDDEN));
}

pub(crate) fn a_read_only_file_is_not_written_or_deleted(share: &Share) {
    let file = share.file("f", b"data");
    share
        .set_basic(file, attributes(FileAttributes::READONLY))
        .expect("set");
    let write = share.open_for("f", AccessMask::FILE_WRITE_DATA);
    assert_eq!(write, Err(Status::ACCESS_DENIED));
    let delete = share
        .open_for("f", AccessMask::DELETE)
        .expect("an open")
        .file;
    let check = share.unit(&FileOp::OnOpen(delete, Operation::CheckDelete));
    assert_eq!(check, Err(Status::CANNOT_DELETE));
    share
        .set_basic(file, attributes(FileAttributes::NONE))
        .expect("set");
    assert_eq!(
        share.unit(&FileOp::OnOpen(delete, Operation::CheckDelete)),
        Ok(())
    );
    assert!(share.open_for("f", AccessMask::FILE_WRITE_DATA).is_ok());
}

pub(crate) fn a_read_only_file_is_not_replaced(share: &Share) {
    let guarded = share.file("guarded", b"data");
    share
        .set_basic(guarded, attributes(FileAttributes::READONLY))
        .expect("set");
    let file = share.file("f", b"");
    assert_eq!(
        share.rename(file, "GUARDED", true),
        Err(Status::ACCESS_DENIED)
    );
    assert_eq!(
        share.link(file, "guarded", true),
        Err(Status::ACCESS_DENIED)
    );
    assert_eq!(share.content("guarded"), Ok(b"data".to_vec()));
}

pub(crate) fn an_overwrite_replaces_the_attributes(share: &Share) {
    let file = share.file("f", b"data");
    share
        .set_basic(file, attributes(FileAttributes::SYSTEM))
        .expect("set");
    let attributes = FileAttributes::HIDDEN;
    let metadata = share.metadata(&FileOp::OnOpen(
        file,
        Operation::Overwrite {
            attributes,
            allocation: 0,
        },
    ));
    let shown = metadata.expect("metadata").attributes;
    assert_eq!(shown, FileAttributes::HIDDEN | FileAttributes::ARCHIVE);
}

pub(crate) fn the_kind_is_not_an_attribute_to_set(share: &Share) {
    let file = share.file("f", b"");
    let asked = FileAttributes::DIRECTORY | FileAttributes::NORMAL | FileAttributes::HIDDEN;
    let metadata = share.set_basic(file, attributes(asked)).expect("set");
    assert_eq!(metadata.attributes, FileAttributes::HIDDEN);
}
