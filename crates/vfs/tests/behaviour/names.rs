//! Rename, hard link and removal.

use proto::file::{Existing, FileOp, KindWanted, Operation, Outcome, Replace};
use proto::path::SharePath;
use wire::Status;
use wire::access::FileAttributes;

use crate::share::Share;

pub(crate) fn a_rename_keeps_the_open(share: &Share) {
    let file = share.file("old", b"data");
    assert_eq!(share.rename(file, "new", false), Ok("new".to_owned()));
    assert_eq!(share.open("old"), Err(Status::OBJECT_NAME_NOT_FOUND));
    assert_eq!(share.content("new"), Ok(b"data".to_vec()));
    assert_eq!(share.read(file, 0, 4), Ok(b"data".to_vec()));
}

pub(crate) fn a_rename_to_a_taken_name_collides(share: &Share) {
    let file = share.file("a", b"a");
    share.file("b", b"b");
    assert_eq!(
        share.rename(file, "b", false),
        Err(Status::OBJECT_NAME_COLLISION)
    );
    assert_eq!(share.names(""), ["a", "b"]);
}

pub(crate) fn a_rename_replaces_if_requested(share: &Share) {
    let file = share.file("a", b"a");
    share.file("b", b"b");
    assert_eq!(share.rename(file, "b", true), Ok("b".to_owned()));
    assert_eq!(share.names(""), ["b"]);
    assert_eq!(share.content("b"), Ok(b"a".to_vec()));
}

pub(crate) fn a_rename_never_replaces_a_directory(share: &Share) {
    let file = share.file("a", b"a");
    let directory = share.directory("d");
    share.directory("e");
    assert_eq!(share.rename(file, "d", true), Err(Status::ACCESS_DENIED));
    assert_eq!(
        share.rename(directory, "e", true),
        Err(Status::ACCESS_DENIED)
    );
    assert_eq!(
        share.rename(directory, "a", true),
        Err(Status::ACCESS_DENIED)
    );
    assert_eq!(share.names(""), ["a", "d", "e"]);
}

pub(crate) fn a_rename_may_change_only_the_case(share: &Share) {
    let file = share.file("readme", b"data");
    assert_eq!(share.rename(file, "README", false), Ok("README".to_owned()));
    assert_eq!(share.names(""), ["README"]);
    assert_eq!(share.rename(file, "README", false), Ok("README".to_owned()));
    let directory = share.directory("dir");
    assert_eq!(share.rename(directory, "Dir", true), Ok("Dir".to_owned()));
    assert_eq!(share.names(""), ["Dir", "README"]);
}

pub(crate) fn a_name_of_other_case_is_taken_too(share: &Share) {
    let file = share.file("a", b"a");
    share.file("Taken", b"b");
    assert_eq!(
        share.rename(file, "tAKEN", false),
        Err(Status::OBJECT_NAME_COLLISION)
    );
}

pub(crate) fn replacing_a_name_of_other_case_takes_the_new_spelling(share: &Share) {
    let file = share.file("a", b"a");
    share.file("Taken", b"b");
    assert_eq!(share.rename(file, "tAKEN", true), Ok("tAKEN".to_owned()));
    assert_eq!(share.names(""), ["tAKEN"]);
    assert_eq!(share.content("taken"), Ok(b"a".to_vec()));
}

pub(crate) fn a_rename_moves_between_directories(share: &Share) {
    share.directory("One");
    share.directory("Two");
    let file = share.file("One/f", b"x");
    assert_eq!(share.rename(file, "TWO/g", false), Ok("Two/g".to_owned()));
    assert_eq!(share.names("One"), Vec::<String>::new());
    assert_eq!(share.names("Two"), ["g"]);
    assert_eq!(
        share.rename(file, "None/g", false),
        Err(Status::OBJECT_PATH_NOT_FOUND)
    );
}

pub(crate) fn a_directory_does_not_move_into_itself(share: &Share) {
    let directory = share.directory("d");
    share.directory("d/below");
    let into = share.rename(directory, "d/below/d", false);
    assert_eq!(into, Err(Status::INVALID_PARAMETER));
}

pub(crate) fn every_open_of_a_renamed_file_has_the_new_name(share: &Share) {
    let first = share.file("old", b"data");
    let second = share.open("old").expect("a second open").file;
    share.rename(first, "new", false).expect("renamed");
    share.close(first);
    share.unlink(second).expect("the new name");
    assert_eq!(share.names(""), Vec::<String>::new());
}

pub(crate) fn an_unlink_removes_the_renamed_name(share: &Share) {
    let file = share.file("old", b"");
    share.rename(file, "new", false).expect("renamed");
    share.file("old", b"another");
    share.unlink(file).expect("unlinked");
    assert_eq!(share.names(""), ["old"]);
}

pub(crate) fn an_unlink_follows_a_renamed_parent(share: &Share) {
    let directory = share.directory("d");
    let file = share.file("d/f", b"");
    share.rename(directory, "e", false).expect("renamed");
    share.directory("d");
    share.file("d/f", b"another");
    share.unlink(file).expect("unlinked");
    assert_eq!(share.names("e"), Vec::<String>::new());
    assert_eq!(share.names("d"), ["f"]);
}

pub(crate) fn an_unlink_never_removes_another_file(share: &Share) {
    let file = share.file("f", b"");
    share.unlink(file).expect("unlinked");
    share.file("f", b"another");
    assert_eq!(share.unlink(file), Err(Status::OBJECT_NAME_NOT_FOUND));
    assert_eq!(share.names(""), ["f"]);
}

pub(crate) fn an_unlink_removes_the_requested_name(share: &Share) {
    share.directory("d");
    let file = share.file("one", b"data");
    share.link(file, "d/two", false).expect("linked");
    let path = SharePath::from_trusted("d/two");
    share
        .unit(&FileOp::OnOpen(file, Operation::Unlink { path }))
        .expect("unlinked");
    assert_eq!(share.names("d"), Vec::<String>::new());
    assert_eq!(share.names(""), ["d", "one"]);
}

pub(crate) fn a_full_directory_stays(share: &Share) {
    let directory = share.directory("d");
    assert_eq!(
        share.unit(&FileOp::OnOpen(directory, Operation::CheckEmpty)),
        Ok(())
    );
    let file = share.file("d/f", b"");
    let full = Err(Status::DIRECTORY_NOT_EMPTY);
    assert_eq!(
        share.unit(&FileOp::OnOpen(directory, Operation::CheckEmpty)),
        full
    );
    assert_eq!(share.unlink(directory), full);
    share.unlink(file).expect("unlinked");
    share.unlink(directory).expect("unlinked");
    assert_eq!(share.names(""), Vec::<String>::new());
}

pub(crate) fn a_file_lives_on_while_open(share: &Share) {
    let file = share.file("f", b"data");
    share.unlink(file).expect("unlinked");
    assert_eq!(share.read(file, 0, 4), Ok(b"data".to_vec()));
    let metadata = share.stat(file).expect("metadata");
    assert_eq!((metadata.links, metadata.size), (0, 4));
    share.close(file);
}

pub(crate) fn a_link_is_a_second_name(share: &Share) {
    let file = share.file("one", b"data");
    share.link(file, "two", false).expect("linked");
    assert_eq!(share.names(""), ["one", "two"]);
    assert_eq!(share.stat(file).expect("metadata").links, 2);
    share.unlink(file).expect("unlinked");
    assert_eq!(share.content("two"), Ok(b"data".to_vec()));
    let directory = share.directory("d");
    assert_eq!(
        share.link(directory, "e", false),
        Err(Status::FILE_IS_A_DIRECTORY)
    );
}

pub(crate) fn a_link_to_a_taken_name_collides(share: &Share) {
    let file = share.file("one", b"1");
    share.file("two", b"2");
    assert_eq!(
        share.link(file, "TWO", false),
        Err(Status::OBJECT_NAME_COLLISION)
    );
    assert_eq!(
        share.link(file, "one", false),
        Err(Status::OBJECT_NAME_COLLISION)
    );
}

pub(crate) fn a_link_replaces_if_requested(share: &Share) {
    let file = share.file("one", b"1");
    share.file("Two", b"2");
    share.link(file, "tWO", true).expect("linked");
    assert_eq!(share.names(""), ["one", "tWO"]);
    assert_eq!(share.content("two"), Ok(b"1".to_vec()));
}

pub(crate) fn a_lookup_finds_and_misses(share: &Share) {
    let directory = share.directory("Dir");
    let file = share.file("Dir/File", b"x");
    let key = share.stat(file).expect("metadata").key;
    let found = share.look_up(directory, "dir/file").expect("a look-up");
    assert_eq!(found.map(|metadata| metadata.key), Some(key));
    assert_eq!(share.look_up(directory, "dir/none"), Ok(None));
    assert_eq!(share.look_up(directory, "none/none"), Ok(None));
    let root = share
        .look_up(directory, "")
        .expect("a look-up")
        .expect("the root");
    assert!(root.is_directory());
}

pub(crate) fn a_rename_replaces_a_protected_file_only_on_request(share: &Share) {
    let file = share.file("a", b"new");
    let mut plan = share.plan("b", Existing::Create, KindWanted::File);
    plan.attributes = FileAttributes::READONLY;
    let protected = share.open_plan(plan).expect("a new file");
    share.close(protected.file);
    let rename = |replace| {
        let to = SharePath::from_trusted("b");
        let op = FileOp::OnOpen(file, Operation::Rename { to, replace });
        share.execute(&op).map(Outcome::expect_renamed)
    };
    assert_eq!(rename(Replace::Nothing), Err(Status::OBJECT_NAME_COLLISION));
    assert_eq!(rename(Replace::Writable), Err(Status::ACCESS_DENIED));
    assert!(rename(Replace::Any).is_ok());
    assert_eq!(share.content("b"), Ok(b"new".to_vec()));
}
