//! Clients can list, open, rename and delete a file with any name that Linux allows.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use proto::file::Select;
use proto::pattern::Pattern;
use vfs::posix::Options;
use wire::Status;
use wire::access::AccessMask;
use wire::file_name::NameMapping;

use crate::share::LocalDirectory;
use crate::watched::{Watched, in_short};

/// Names on the disk, and the names that clients see.
const NAMES: [(&[u8], &str); 22] = [
    (b"cam_11:05:00.jpg", "cam_11\u{f022}05\u{f022}00.jpg"),
    (b"what?.txt", "what\u{f025}.txt"),
    (b"say \"x\"", "say \u{f020}x\u{f020}"),
    (b"star*", "star\u{f021}"),
    (b"lt<gt>", "lt\u{f023}gt\u{f024}"),
    (b"a|b", "a\u{f027}b"),
    (b"back\\slash", "back\u{f026}slash"),
    (b"tab\tx", "tab\u{f009}x"),
    (b"line\nfeed\r", "line\u{f00a}feed\u{f00d}"),
    (b"\x01\x1f\x7f", "\u{f001}\u{f01f}\u{7f}"),
    (b"dot.", "dot\u{f029}"),
    (b"blank ", "blank\u{f028}"),
    (b"...", "..\u{f029}"),
    (b"\xe4 latin", "\u{efe4} latin"),
    (b"lat\xe4in", "lat\u{efe4}in"),
    (b"latin \xe4", "latin \u{efe4}"),
    (b"\xff\xfe", "\u{efff}\u{effe}"),
    (b"\xc3\xa4 and \xe4:", "\u{e4} and \u{efe4}\u{f022}"),
    (b"\xc0\xaf", "\u{efc0}\u{efaf}"),
    // A code point of the mapping itself, and its twin.
    (b"a\xef\x80\xa2b", "a\u{efef}\u{ef80}\u{efa2}b"),
    (b"a:b", "a\u{f022}b"),
    (b"CON", "CON"),
];

fn on_disk(local: &LocalDirectory, name: &[u8]) -> PathBuf {
    local.path("").join(OsStr::from_bytes(name))
}

/// A share of a directory with all names; each file contains its name.
fn filled(options: Options) -> LocalDirectory {
    let local = LocalDirectory::new(options);
    for (disk, _) in NAMES {
        let path = on_disk(&local, disk);
        fs::write(&path, disk).expect("a file");
        if vfs::identity::switches() {
            std::os::unix::fs::chown(path, Some(1000), Some(1000)).expect("a chown");
        }
    }
    local
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names
}

#[test]
fn a_listed_name_opens_renames_and_deletes() {
    let local = filled(Options::default());
    let share = &local.share;
    let wanted = NAMES.iter().map(|(_, wire)| (*wire).to_owned()).collect();
    assert_eq!(share.names(""), sorted(wanted));
    for (disk, wire) in NAMES {
        assert_eq!(share.content(wire).as_deref(), Ok(disk), "{wire:?}");
        let file = share.open(wire).expect("a listed name opens").file;
        assert_eq!(share.rename(file, "plain", false), Ok("plain".to_owned()));
        assert!(!on_disk(&local, disk).exists(), "{wire:?}");
        assert_eq!(share.rename(file, wire, false), Ok(wire.to_owned()));
        assert!(on_disk(&local, disk).exists(), "{wire:?}");
        share.unlink(file).expect("a removal");
        share.close(file);
        assert!(!on_disk(&local, disk).exists(), "{wire:?}");
        assert_eq!(share.open(wire), Err(Status::OBJECT_NAME_NOT_FOUND));
    }
    assert_eq!(share.names(""), [""; 0]);
}

#[test]
fn a_client_creates_the_name_that_others_see() {
    let local = LocalDirectory::new(Options::default());
    let share = &local.share;
    for (disk, wire) in NAMES {
        let file = share.file(wire, b"data");
        assert!(on_disk(&local, disk).exists(), "{wire:?}");
        share.link(file, "link", false).expect("a link");
        share.link(file, wire, true).expect("the link exists");
        let found = share.look_up(file, wire).expect("a look-up");
        assert!(found.is_some(), "{wire:?}");
        let link = share.open("link").expect("the link").file;
        share.unlink(link).expect("a removal");
        share.close(link);
        share.close(file);
    }
    let wanted = NAMES.iter().map(|(_, wire)| (*wire).to_owned()).collect();
    assert_eq!(share.names(""), sorted(wanted));
}

#[test]
fn directories_with_such_names_are_components_of_paths() {
    let local = LocalDirectory::new(Options::default());
    let share = &local.share;
    for (disk, wire) in NAMES {
        let directory = share.directory(wire);
        let inner = format!("{wire}/{wire}");
        let file = share.file(&inner, disk);
        share.close(file);
        let path = on_disk(&local, disk).join(OsStr::from_bytes(disk));
        assert_eq!(fs::read(path).expect("a file"), disk);
        assert_eq!(share.names(wire), [wire]);
        assert_eq!(share.content(&inner).as_deref(), Ok(disk));
        // The path differs in case.
        let other_case = inner.to_ascii_uppercase();
        assert_eq!(share.content(&other_case).as_deref(), Ok(disk));
        let file = share.open(&inner).expect("the file").file;
        share.unlink(file).expect("a removal");
        share.close(file);
        share.unlink(directory).expect("the directory is empty");
        share.close(directory);
    }
}

#[test]
fn case_does_not_matter_in_a_mapped_name() {
    let local = filled(Options::default());
    let share = &local.share;
    for (disk, wire) in NAMES {
        let upper = wire.to_ascii_uppercase();
        assert_eq!(share.content(&upper).as_deref(), Ok(disk), "{upper:?}");
        assert!(matches!(
            share.create(&upper),
            Err(Status::OBJECT_NAME_COLLISION)
        ));
    }
    fs::rename(on_disk(&local, b"a:b"), on_disk(&local, b"A:C")).expect("a rename");
    assert_eq!(share.content("a\u{f022}c").as_deref(), Ok(&b"a:b"[..]));
}

#[test]
fn wildcards_match_the_mapped_names() {
    let local = filled(Options::default());
    let share = &local.share;
    let list = AccessMask::FILE_LIST_DIRECTORY;
    let root = share.open_for("", list).expect("the root").file;
    let matching = |pattern: &str| {
        let select = Select::Matching(Pattern::new(pattern));
        let entries = share.list(root, true, select, 100).expect("a listing");
        sorted(entries.into_iter().map(|entry| entry.name).collect())
    };
    assert_eq!(
        matching("CAM*\u{f022}*.jpg"),
        ["cam_11\u{f022}05\u{f022}00.jpg"]
    );
    assert_eq!(matching("what?.txt"), ["what\u{f025}.txt"]);
    assert_eq!(matching("?lash"), [""; 0]);
    assert_eq!(matching("dot?"), ["dot\u{f029}"]);
    assert_eq!(matching("*latin*").len(), 2);
    for (_, wire) in NAMES {
        let select = Select::Name(wire.to_ascii_uppercase());
        let entries = share.list(root, true, select, 100).expect("a listing");
        let names: Vec<_> = entries.into_iter().map(|entry| entry.name).collect();
        assert_eq!(names, [wire]);
    }
}

#[test]
fn a_name_with_a_dot_at_the_end_means_the_mapped_one() {
    let local = LocalDirectory::new(Options::default());
    let share = &local.share;
    let file = share.create("dot.").expect("a new file");
    assert_eq!(file.path.as_str(), "dot\u{f029}");
    assert!(on_disk(&local, b"dot.").exists());
    assert_eq!(share.names(""), ["dot\u{f029}"]);
    assert_eq!(share.open("DOT.").map(|opened| opened.path), Ok(file.path));
    // `.` and `..` are no names, in any form.
    for name in ["\u{f029}", ".\u{f029}", "a/.\u{f029}/b", "\u{efc3}\u{efa4}"] {
        assert_eq!(share.open(name), Err(Status::OBJECT_NAME_INVALID));
        assert!(matches!(
            share.create(name),
            Err(Status::OBJECT_NAME_INVALID)
        ));
    }
}

#[test]
fn a_name_of_255_bytes_can_be_used() {
    let local = LocalDirectory::new(Options::default());
    let share = &local.share;
    for name in [
        vec![b':'; 255],
        vec![0xff; 255],
        "\u{f022}".repeat(85).into_bytes(),
    ] {
        fs::write(on_disk(&local, &name), b"data").expect("a file");
        let listed = share.names("");
        assert_eq!(listed.len(), 1);
        assert_eq!(listed[0].encode_utf16().count(), 255);
        assert_eq!(share.content(&listed[0]).as_deref(), Ok(&b"data"[..]));
        fs::remove_file(on_disk(&local, &name)).expect("removed");
    }
}

#[test]
fn hidden_names_are_not_listed_and_not_created() {
    let options = Options {
        names: NameMapping::Hide,
        ..Options::default()
    };
    let local = filled(options);
    let share = &local.share;
    // The literal code point is an ordinary name here.
    assert_eq!(share.names(""), ["CON", "a\u{f022}b"]);
    assert_eq!(
        share.content("a\u{f022}b").as_deref(),
        Ok("a\u{f022}b".as_bytes())
    );
    assert_eq!(
        share.open("dot\u{f029}"),
        Err(Status::OBJECT_NAME_NOT_FOUND)
    );
    assert!(matches!(
        share.create("dot."),
        Err(Status::OBJECT_NAME_INVALID)
    ));
}

#[test]
fn changes_by_others_have_the_mapped_names() {
    let mut watched = Watched::new(&["d"]);
    watched.watch("", true);
    watched.elsewhere("mkdir d/x:\ntouch d/x:/a?\nrename d/x:/a? d/x:/dot.\nrm d/x:/dot.");
    let reported = in_short(&watched.reported("d"));
    let x = "d/x\u{f022}";
    let wanted = [
        format!("+{x}"),
        format!("+{x}/a\u{f025}"),
        format!("<{x}/a\u{f025}"),
        format!(">{x}/dot\u{f029}"),
        format!("-{x}/dot\u{f029}"),
    ];
    assert_eq!(reported[0], wanted[0]);
    // The scan of the new directory may come after the rename or the removal.
    assert!(
        reported
            .iter()
            .all(|event| wanted.contains(event) || *event == format!("+{x}/dot\u{f029}"))
    );
    // The marks below the directory exist by now.
    watched.elsewhere("touch d/x:/b|c\nrename d/x: d/y:\ntouch d/y:/tab\tx");
    let reported = in_short(&watched.reported("d"));
    let wanted = [
        "+d/x\u{f022}/b\u{f027}c",
        "<d/x\u{f022}",
        ">d/y\u{f022}",
        "+d/y\u{f022}/tab\u{f009}x",
    ];
    assert_eq!(reported, wanted);
}
