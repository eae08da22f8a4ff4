//! Open and creation of files.

use proto::file::{
    Existing, FileKind, FileOp, KindWanted, LocalOpen, OpenPlan, Operation, ShareId,
};
use wire::Status;
use wire::access::AccessMask;

use crate::share::Share;

pub(crate) fn a_file_that_is_missing_is_not_found(share: &Share) {
    assert_eq!(share.open("missing"), Err(Status::OBJECT_NAME_NOT_FOUND));
    share.directory("d");
    assert_eq!(share.open("d/missing"), Err(Status::OBJECT_NAME_NOT_FOUND));
}

pub(crate) fn a_missing_parent_is_a_missing_path(share: &Share) {
    assert_eq!(
        share.open("missing/file"),
        Err(Status::OBJECT_PATH_NOT_FOUND)
    );
    assert_eq!(
        share.create("missing/file"),
        Err(Status::OBJECT_PATH_NOT_FOUND)
    );
    assert_eq!(
        share.create("a/b/c/file"),
        Err(Status::OBJECT_PATH_NOT_FOUND)
    );
}

pub(crate) fn a_file_as_parent_is_a_missing_path(share: &Share) {
    share.file("file", b"");
    assert_eq!(share.open("file/below"), Err(Status::OBJECT_PATH_NOT_FOUND));
    assert_eq!(
        share.create("file/below"),
        Err(Status::OBJECT_PATH_NOT_FOUND)
    );
    assert_eq!(
        share.open("FILE/below/more"),
        Err(Status::OBJECT_PATH_NOT_FOUND)
    );
}

pub(crate) fn a_new_file_is_created_once(share: &Share) {
    let opened = share.create("new").expect("a new file");
    assert!(opened.created);
    assert_eq!(opened.path.as_str(), "new");
    assert_eq!(opened.metadata.kind, FileKind::File);
    assert_eq!(opened.metadata.size, 0);
    assert_eq!(share.create("new"), Err(Status::OBJECT_NAME_COLLISION));
    assert_eq!(share.create("NEW"), Err(Status::OBJECT_NAME_COLLISION));
    share.directory("dir");
    assert_eq!(share.create("dir"), Err(Status::OBJECT_NAME_COLLISION));
}

pub(crate) fn open_or_create_reports_which(share: &Share) {
    let plan = || share.plan("file", Existing::OpenOrCreate, KindWanted::File);
    assert!(share.open_plan(plan()).expect("made").created);
    assert!(!share.open_plan(plan()).expect("found").created);
}

pub(crate) fn a_directory_is_created_and_opened(share: &Share) {
    let plan = share.plan("dir", Existing::OpenOrCreate, KindWanted::Directory);
    let opened = share.open_plan(plan.clone()).expect("made");
    assert!(opened.created);
    assert!(opened.metadata.is_directory());
    let again = share.open_plan(plan).expect("found");
    assert!(!again.created);
    assert_eq!(again.metadata.key, opened.metadata.key);
}

pub(crate) fn the_wrong_kind_is_refused(share: &Share) {
    share.directory("dir");
    share.file("file", b"");
    let open = |name, kind| share.open_plan(share.plan(name, Existing::Open, kind));
    assert_eq!(
        open("dir", KindWanted::File),
        Err(Status::FILE_IS_A_DIRECTORY)
    );
    assert_eq!(
        open("file", KindWanted::Directory),
        Err(Status::NOT_A_DIRECTORY)
    );
    assert!(open("dir", KindWanted::Any).is_ok());
    let or_create = |name, kind| share.open_plan(share.plan(name, Existing::OpenOrCreate, kind));
    assert_eq!(
        or_create("dir", KindWanted::File),
        Err(Status::FILE_IS_A_DIRECTORY)
    );
    assert_eq!(
        or_create("file", KindWanted::Directory),
        Err(Status::NOT_A_DIRECTORY)
    );
}

pub(crate) fn the_root_opens(share: &Share) {
    let access = AccessMask::FILE_LIST_DIRECTORY | AccessMask::FILE_READ_ATTRIBUTES;
    let root = share.open_for("", access).expect("the root");
    assert!(root.metadata.is_directory());
    assert!(root.path.is_root());
    let create = share.plan("", Existing::Create, KindWanted::Directory);
    let create = OpenPlan { access, ..create };
    assert_eq!(share.open_plan(create), Err(Status::OBJECT_NAME_COLLISION));
}

pub(crate) fn names_are_found_without_regard_to_case(share: &Share) {
    share.directory("Stra\u{df}e");
    share.directory("Stra\u{df}e/\u{c4}rger");
    let file = share
        .create("Stra\u{df}e/\u{c4}rger/Read.Me")
        .expect("a new file");
    let found = share
        .open("STRA\u{df}E/\u{e4}RGER/rEAD.mE")
        .expect("the same file");
    assert_eq!(found.metadata.key, file.metadata.key);
    assert_eq!(found.path.as_str(), "Stra\u{df}e/\u{c4}rger/Read.Me");
    let plan = share.plan(
        "STRA\u{df}E/\u{e4}RGER/READ.ME",
        Existing::OpenOrCreate,
        KindWanted::File,
    );
    assert!(!share.open_plan(plan).expect("the same file").created);
    assert_eq!(share.open("STRASSE"), Err(Status::OBJECT_NAME_NOT_FOUND));
}

pub(crate) fn the_exact_directory_is_spelled_as_it_is(share: &Share) {
    share.directory("Dir");
    let opened = share.create("dIR/New").expect("a new file");
    assert_eq!(opened.path.as_str(), "Dir/New");
    assert_eq!(share.names(""), ["Dir"]);
}

pub(crate) fn a_closed_open_is_removed(share: &Share) {
    let first = share.file("a", b"first");
    share.close(first);
    let second = share.file("b", b"second");
    assert_eq!(share.stat(first), Err(Status::FILE_CLOSED));
    assert_eq!(share.read(first, 0, 6), Err(Status::FILE_CLOSED));
    assert_eq!(share.unlink(first), Err(Status::FILE_CLOSED));
    share.close(first);
    assert_eq!(share.read(second, 0, 6), Ok(b"second".to_vec()));
}

pub(crate) fn another_shares_open_is_not_ours(share: &Share) {
    let ours = share.file("a", b"");
    let theirs = LocalOpen {
        share: ShareId(4),
        ..ours
    };
    assert_eq!(share.stat(theirs), Err(Status::FILE_CLOSED));
    share
        .unit(&FileOp::OnOpen(theirs, Operation::Close))
        .expect("a close never fails");
    assert!(share.stat(ours).is_ok());
}
