//! Directories: made, listed, watched, removed; names that are refused.

mod rig;

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use rig::{Rig, pattern};
use smbeam_client::{
    Change, Changes, CompletionFilter, Error, FileAction, FileAttributes, Status, Wait,
    WriteOptions,
};

#[test]
fn ten_thousand_entries_are_listed_once_each() {
    let rig = Rig::new();
    std::fs::create_dir(rig.path("many")).expect("a folder");
    let names: BTreeSet<_> = (0..10_000)
        .map(|n| format!("entry number {n:05}"))
        .collect();
    for name in &names {
        std::fs::write(rig.path("many").join(name), name).expect("a file");
    }
    let share = rig.share();
    let listing = share.read_dir("many", "").wait().expect("a listing");
    let mut found = BTreeSet::new();
    for entry in listing.blocking() {
        let entry = entry.expect("an entry");
        assert_eq!(entry.metadata.size, entry.name.len() as u64);
        assert!(!entry.metadata.is_dir());
        assert!(found.insert(entry.name), "listed once");
    }
    assert_eq!(found, names);
    let some = share.read_dir("many", "*0042*").wait().expect("a listing");
    assert_eq!(some.blocking().count(), 10 + 1);
    let none = share.read_dir("many", "nothing").wait().expect("a listing");
    assert_eq!(none.blocking().count(), 0);
}

#[test]
fn directories_come_and_go() {
    let rig = Rig::new();
    let share = rig.share();
    share.create_dir("one").wait().expect("made");
    let again = share.create_dir("one").wait().expect_err("there");
    assert_eq!(again.status(), Some(Status::OBJECT_NAME_COLLISION));
    share
        .create_dir_all("one/two/three/four")
        .wait()
        .expect("made");
    share.create_dir_all("one\\two").wait().expect("there");
    assert!(rig.path("one/two/three/four").is_dir());
    assert!(share.metadata("one/two").wait().expect("known").is_dir());
    let full = share.remove_dir("one").wait().expect_err("not empty");
    assert_eq!(full.status(), Some(Status::DIRECTORY_NOT_EMPTY));
    assert!(rig.path("one/two").is_dir());
    share
        .remove_dir("one/two/three/four")
        .wait()
        .expect("removed");
    assert!(!rig.path("one/two/three/four").exists());
    let gone = share
        .metadata("one/two/three/four")
        .wait()
        .expect_err("gone");
    assert!(gone.is_not_found());
    assert!(gone.to_string().contains("one/two/three/four"), "{gone}");
}

#[test]
fn files_are_renamed_and_changed() {
    let rig = Rig::new();
    let share = rig.share();
    let options = WriteOptions::default();
    share.write("a", vec![1], &options).wait().expect("written");
    share.write("b", vec![2], &options).wait().expect("written");
    let there = share.rename("a", "b", false).wait().expect_err("there");
    assert_eq!(there.status(), Some(Status::OBJECT_NAME_COLLISION));
    share.rename("a", "b", true).wait().expect("replaced");
    assert_eq!(std::fs::read(rig.path("b")).expect("there"), [1]);
    assert!(!rig.path("a").exists());
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    let changes = Changes::default()
        .written(Some(time))
        .attributes(Some(FileAttributes::READONLY));
    share.set_metadata("b", &changes).wait().expect("changed");
    let metadata = share.metadata("b").wait().expect("known");
    assert_eq!(metadata.written, time);
    assert!(metadata.attributes.contains(FileAttributes::READONLY));
    assert_eq!(metadata.size, 1);
    assert!(metadata.file_id.is_some());
}

#[test]
fn impossible_names_are_refused_here() {
    let rig = Rig::new();
    let share = rig.share();
    for name in ["../etc", "a:b", "a\0"] {
        let error = share.metadata(name).wait().expect_err("no name");
        assert!(matches!(error, Error::InvalidName(..)), "{error}");
    }
}

#[test]
fn volumes_have_sizes() {
    let rig = Rig::new();
    let volume = rig.share().volume().wait().expect("a volume");
    assert!(volume.total >= volume.available && volume.available > 0);
    assert!(volume.block.is_power_of_two());
    assert!(!volume.filesystem.is_empty());
}

#[test]
fn changes_are_told() {
    let rig = Rig::new();
    let share = rig.share();
    share.create_dir("watched").wait().expect("made");
    let filter = CompletionFilter::FILE_NAME | CompletionFilter::DIR_NAME;
    let mut watch = share.watch("watched", false, filter).wait().expect("watch");
    let options = WriteOptions::default();
    let path = "watched/new";
    share
        .write(path, vec![1], &options)
        .wait()
        .expect("written");
    let mut changes = watch.next().wait().expect("a change");
    let added = Change::Name {
        action: FileAction::ADDED,
        path: "new".to_owned(),
    };
    assert!(changes.contains(&added), "{changes:?}");
    share.remove_file(path).wait().expect("removed");
    let removed = Change::Name {
        action: FileAction::REMOVED,
        path: "new".to_owned(),
    };
    while !changes.contains(&removed) {
        changes = watch.next().wait().expect("a change");
    }
}

#[test]
fn copies_stay_on_the_server_or_take_the_long_way() {
    let rig = Rig::new();
    let session = rig.session();
    let share = session.share(rig::SHARE).wait().expect("a share");
    let bytes = pattern(40_000_001, 3);
    std::fs::write(rig.path("from"), &bytes).expect("a file");
    let mut told = 0;
    let copied = share
        .copy("from", &share, "to", &mut |count| told += count)
        .wait()
        .expect("copied");
    assert_eq!((copied, told), (bytes.len() as u64, bytes.len() as u64));
    assert!(std::fs::read(rig.path("to")).expect("there") == bytes);
}

#[test]
fn shares_are_listed() {
    let rig = Rig::new();
    let shares = rig.session().shares().wait().expect("a list");
    let data = shares.iter().find(|share| share.name == rig::SHARE);
    let kind = data.expect("our share").kind;
    assert_eq!(kind.kind(), smbeam_client::ShareKind::DISKTREE);
}
