//! Directory listings.

use proto::file::{FileKind, Select};
use proto::pattern::Pattern;
use wire::Status;
use wire::access::AccessMask;

use crate::share::Share;

fn fill(share: &Share, count: u32) {
    share.directory("d");
    for n in 0..count {
        let file = share.file(&format!("d/File{n:04}"), b"x");
        share.close(file);
    }
}

pub(crate) fn an_empty_directory_lists_itself_and_its_parent(share: &Share) {
    let directory = share.directory("d");
    let entries = share
        .list(directory, false, Select::All, 100)
        .expect("a listing");
    let names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, [".", ".."]);
    let key = share.stat(directory).expect("metadata").key;
    assert_eq!(entries[0].metadata.key, key);
    let root = share
        .open_for("", AccessMask::FILE_READ_ATTRIBUTES)
        .expect("the root");
    assert_eq!(entries[1].metadata.key, root.metadata.key);
    assert_eq!(share.list(directory, false, Select::All, 100), Ok(vec![]));
}

pub(crate) fn a_listing_continues_where_it_ended(share: &Share) {
    fill(share, 1000);
    let directory = share.open("d").expect("the directory").file;
    let mut names = Vec::new();
    loop {
        let entries = share
            .list(directory, false, Select::All, 7)
            .expect("a listing");
        assert!(entries.len() <= 7);
        if entries.is_empty() {
            break;
        }
        names.extend(entries.into_iter().map(|entry| entry.name));
    }
    assert_eq!(names[..2], [".", ".."]);
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 1002);
    assert_eq!(share.list(directory, false, Select::All, 7), Ok(vec![]));
}

pub(crate) fn a_restart_begins_again(share: &Share) {
    fill(share, 5);
    let directory = share.open("d").expect("the directory").file;
    let first = share
        .list(directory, false, Select::All, 4)
        .expect("a listing");
    assert_eq!(first.len(), 4);
    share.file("d/late", b"");
    let again = share
        .list(directory, true, Select::All, 100)
        .expect("a listing");
    assert_eq!(again.len(), 8);
}

pub(crate) fn one_name_is_looked_up(share: &Share) {
    fill(share, 5);
    let directory = share.open("d").expect("the directory").file;
    let select = || Select::Name("fILE0003".to_owned());
    let entries = share
        .list(directory, true, select(), 100)
        .expect("a listing");
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].name, "File0003");
    assert_eq!(entries[0].metadata.size, 1);
    assert_eq!(share.list(directory, false, select(), 100), Ok(vec![]));
    let none = Select::Name("none".to_owned());
    assert_eq!(share.list(directory, true, none, 100), Ok(vec![]));
}

pub(crate) fn a_pattern_selects(share: &Share) {
    fill(share, 30);
    let directory = share.open("d").expect("the directory").file;
    let select = || Select::Matching(Pattern::new("*0?7"));
    let mut names = Vec::new();
    loop {
        let entries = share
            .list(directory, false, select(), 2)
            .expect("a listing");
        names.extend(entries.iter().map(|entry| entry.name.clone()));
        if entries.is_empty() {
            break;
        }
    }
    names.sort();
    assert_eq!(names, ["File0007", "File0017", "File0027"]);
}

pub(crate) fn entries_have_the_metadata_of_an_open(share: &Share) {
    share.directory("d");
    let file = share.file("d/.hidden", b"12345");
    share.directory("d/sub");
    let expected = share.stat(file).expect("metadata");
    let directory = share.open("d").expect("the directory").file;
    let mut entries = share
        .list(directory, true, Select::All, 100)
        .expect("a listing");
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    assert_eq!(entries[2].name, ".hidden");
    assert_eq!(entries[2].metadata, expected);
    assert_eq!(entries[3].metadata.kind, FileKind::Directory);
}

pub(crate) fn the_parent_of_the_root_is_the_root(share: &Share) {
    let root = share
        .open_for("", AccessMask::FILE_LIST_DIRECTORY)
        .expect("the root");
    let entries = share
        .list(root.file, true, Select::All, 100)
        .expect("a listing");
    assert_eq!(entries[0].metadata.key, root.metadata.key);
    assert_eq!(entries[1].metadata.key, root.metadata.key);
}

pub(crate) fn a_file_is_not_listed(share: &Share) {
    let file = share.file("f", b"");
    let listing = share.list(file, true, Select::All, 1);
    assert_eq!(listing, Err(Status::INVALID_PARAMETER));
}

pub(crate) fn a_listing_survives_removals(share: &Share) {
    fill(share, 50);
    let directory = share.open("d").expect("the directory").file;
    share
        .list(directory, false, Select::All, 10)
        .expect("a listing");
    for n in 0..50 {
        let file = share.open(&format!("d/File{n:04}")).expect("a file").file;
        share.unlink(file).expect("unlinked");
        share.close(file);
    }
    while !share
        .list(directory, false, Select::All, 10)
        .expect("a listing")
        .is_empty()
    {}
    assert_eq!(share.names("d"), Vec::<String>::new());
}
