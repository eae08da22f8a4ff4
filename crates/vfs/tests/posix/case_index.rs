//! Names are found without regard to case, whoever changes the directory.

use std::fs;
use std::sync::Arc;

use proto::file::{Existing, FileOp, KindWanted, OpenPlan, Outcome};
use vfs::posix::{DIRECTORIES_MAX, Options};
use vfs::{Attempt, Effort, FileSystem};
use wire::Status;
use wire::access::AccessMask;

use crate::share::Folder;

const LOOK: AccessMask = AccessMask::FILE_READ_ATTRIBUTES;

/// How the share spells a name; `None` where it has none like it.
fn spelled(folder: &Folder, name: &str) -> Option<String> {
    match folder.share.open_for(name, LOOK) {
        Ok(opened) => {
            folder.share.close(opened.file);
            Some(opened.path.as_str().to_owned())
        }
        Err(Status::OBJECT_NAME_NOT_FOUND | Status::OBJECT_PATH_NOT_FOUND) => None,
        Err(status) => panic!("{name}: {status:?}"),
    }
}

#[test]
fn what_others_do_is_seen() {
    let folder = Folder::new(Options::default());
    assert_eq!(spelled(&folder, "README"), None);
    fs::write(folder.path("Readme"), b"").expect("a file");
    assert_eq!(spelled(&folder, "README").as_deref(), Some("Readme"));
    fs::rename(folder.path("Readme"), folder.path("Other")).expect("a rename");
    assert_eq!(spelled(&folder, "README"), None);
    assert_eq!(spelled(&folder, "OTHER").as_deref(), Some("Other"));
    fs::rename(folder.path("Other"), folder.path("oTHER")).expect("a rename");
    assert_eq!(spelled(&folder, "OTHER").as_deref(), Some("oTHER"));
    fs::remove_file(folder.path("oTHER")).expect("removed");
    assert_eq!(spelled(&folder, "OTHER"), None);
    fs::create_dir(folder.path("Dir")).expect("a folder");
    fs::write(folder.path("Dir/File"), b"").expect("a file");
    assert_eq!(spelled(&folder, "DIR/FILE").as_deref(), Some("Dir/File"));
    fs::remove_dir_all(folder.path("Dir")).expect("removed");
    assert_eq!(spelled(&folder, "DIR/FILE"), None);
    fs::create_dir(folder.path("dIR")).expect("a folder");
    fs::write(folder.path("dIR/fILE"), b"").expect("a file");
    assert_eq!(spelled(&folder, "DIR/FILE").as_deref(), Some("dIR/fILE"));
    fs::rename(folder.path("dIR"), folder.path("Moved")).expect("a rename");
    assert_eq!(spelled(&folder, "DIR/FILE"), None);
    assert_eq!(
        spelled(&folder, "MOVED/FILE").as_deref(),
        Some("Moved/fILE")
    );
}

#[test]
fn the_exact_name_comes_first() {
    let folder = Folder::new(Options::default());
    for name in ["abc", "ABC", "Abc"] {
        fs::write(folder.path(name), b"").expect("a file");
    }
    for name in ["abc", "ABC", "Abc"] {
        assert_eq!(spelled(&folder, name).as_deref(), Some(name));
    }
    assert_eq!(spelled(&folder, "aBC").as_deref(), Some("ABC"));
}

#[test]
fn more_changes_than_the_kernel_queues_are_not_missed() {
    let folder = Folder::new(Options::default());
    fs::write(folder.path("First"), b"").expect("a file");
    assert_eq!(spelled(&folder, "FIRST").as_deref(), Some("First"));
    // The queue of inotify holds 16,384 events by default.
    for n in 0..10_000 {
        fs::write(folder.path(&format!("f{n}")), b"").expect("a file");
        fs::remove_file(folder.path(&format!("f{n}"))).expect("removed");
    }
    fs::rename(folder.path("First"), folder.path("Last")).expect("a rename");
    assert_eq!(spelled(&folder, "FIRST"), None);
    assert_eq!(spelled(&folder, "LAST").as_deref(), Some("Last"));
    assert_eq!(spelled(&folder, "F9999"), None);
}

#[test]
fn somebody_else_changes_the_directory_all_the_time() {
    let folder = Folder::new(Options::default());
    let at = folder.path("");
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            for n in 0..3000_u32 {
                fs::write(at.join(format!("Kept{n}")), b"").expect("a file");
                fs::write(at.join(format!("Gone{n}")), b"").expect("a file");
                fs::remove_file(at.join(format!("Gone{n}"))).expect("removed");
            }
        });
        while !other.is_finished() {
            let _ = spelled(&folder, "KEPT0");
            // The index is dropped and made anew in the middle of it.
            let small = spelled(&folder, "GONE1");
            assert!(small.is_none() || small.as_deref() == Some("Gone1"));
        }
    });
    for n in 0..3000 {
        let kept = spelled(&folder, &format!("KEPT{n}"));
        assert_eq!(kept, Some(format!("Kept{n}")));
        assert_eq!(spelled(&folder, &format!("GONE{n}")), None);
    }
}

#[test]
fn of_two_that_differ_in_case_one_is_made() {
    let folder = Folder::new(Options::default());
    let make = |name: String| {
        let plan = folder
            .share
            .plan(&name, Existing::OpenOrCreate, KindWanted::File);
        let opened = folder.share.open_plan(plan).expect("an open");
        folder.share.close(opened.file);
        opened.created
    };
    let run =
        |prefix: &'static str| move || (0..2000).filter(|n| make(format!("{prefix}{n}"))).count();
    let (lower, upper) = std::thread::scope(|scope| {
        let (lower, upper) = (scope.spawn(run("name")), scope.spawn(run("NAME")));
        (
            lower.join().expect("a count"),
            upper.join().expect("a count"),
        )
    });
    assert_eq!(lower + upper, 2000);
    assert_eq!(folder.share.names("").len(), 2000);
}

#[test]
fn the_index_keeps_to_its_bytes() {
    let index_bytes = 100_000;
    let folder = Folder::new(Options {
        index_bytes,
        ..Options::default()
    });
    for d in 0..10 {
        folder.share.close(folder.share.directory(&format!("d{d}")));
        for n in 0..300 {
            fs::write(folder.path(&format!("d{d}/Name{n}")), b"").expect("a file");
        }
    }
    for round in 0..3 {
        for d in 0..10 {
            let name = spelled(&folder, &format!("D{d}/NAME{round}"));
            assert_eq!(name, Some(format!("d{d}/Name{round}")));
            let held = folder.posix.usage();
            assert!(held.index_bytes <= index_bytes, "{held:?}");
        }
    }
    assert!(folder.posix.usage().indexed_directories > 1);
}

#[test]
fn a_directory_that_outgrows_the_bound_is_scanned_each_time() {
    let index_bytes = 20_000;
    let folder = Folder::new(Options {
        index_bytes,
        ..Options::default()
    });
    for n in 0..1000 {
        fs::write(folder.path(&format!("Name{n}")), b"").expect("a file");
    }
    assert_eq!(spelled(&folder, "NAME999").as_deref(), Some("Name999"));
    assert_eq!(folder.posix.usage().indexed_directories, 0);
    fs::rename(folder.path("Name999"), folder.path("nAME999")).expect("a rename");
    assert_eq!(spelled(&folder, "NAME999").as_deref(), Some("nAME999"));
}

#[test]
fn the_directory_not_used_for_the_longest_goes_first() {
    let folder = Folder::new(Options::default());
    for d in 0..DIRECTORIES_MAX + 10 {
        fs::create_dir(folder.path(&format!("d{d}"))).expect("a folder");
    }
    let look = |d: usize| assert_eq!(spelled(&folder, &format!("d{d}/none")), None);
    look(0);
    for d in 1..DIRECTORIES_MAX + 10 {
        look(d);
        look(0);
    }
    assert_eq!(folder.posix.usage().indexed_directories, DIRECTORIES_MAX);
    // What was used all the time is still known, what was not is not.
    let look_at_once = |d: usize| {
        let plan = folder
            .share
            .plan(&format!("d{d}/none"), Existing::Open, KindWanted::Any);
        folder.posix.execute(&FileOp::Open(plan), Effort::Cached)
    };
    let missing = |attempt| matches!(attempt, Attempt::Done(Err(Status::OBJECT_NAME_NOT_FOUND)));
    assert!(missing(look_at_once(0)));
    assert!(!missing(look_at_once(1)));
}

/// Making n files must not look at n^2 names: after the first, the index answers without a scan.
#[test]
fn new_files_need_no_scan() {
    let folder = Folder::new(Options::default());
    let share = &folder.share;
    share.close(share.create("first").expect("a new file").file);
    for n in 0..500 {
        let name = format!("File{n}");
        let look = share.plan(&name, Existing::Open, KindWanted::Any);
        let attempt = folder.posix.execute(&FileOp::Open(look), Effort::Cached);
        assert!(matches!(
            attempt,
            Attempt::Done(Err(Status::OBJECT_NAME_NOT_FOUND))
        ));
        let plan = share.plan(&name, Existing::Create, KindWanted::File);
        let attempt = folder.posix.execute(&FileOp::Open(plan), Effort::Cached);
        let Attempt::Done(Ok(Outcome::Opened(opened))) = attempt else {
            panic!("{name}: {attempt:?}");
        };
        assert!(opened.created);
        share.close(opened.file);
    }
}

#[test]
fn a_folder_that_may_be_searched_and_not_read_is_searched() {
    let folder = Folder::new(Options::default());
    fs::create_dir(folder.path("Dir")).expect("a folder");
    fs::write(folder.path("Dir/File"), b"x").expect("a file");
    let search = std::os::unix::fs::PermissionsExt::from_mode(0o711);
    fs::set_permissions(folder.path("Dir"), search).expect("a chmod");
    if !vfs::identity::switches() {
        println!("skipped: needs root");
        return;
    }
    let plan = folder
        .share
        .plan("DIR/FILE", Existing::Open, KindWanted::Any);
    let plan = OpenPlan {
        token: Arc::clone(&folder.share.token),
        access: LOOK,
        ..plan
    };
    let opened = folder.share.open_plan(plan).expect("the file");
    assert_eq!(opened.path.as_str(), "Dir/File");
    let list = folder
        .share
        .open_for("dir", AccessMask::FILE_LIST_DIRECTORY);
    assert_eq!(list, Err(Status::ACCESS_DENIED));
}
