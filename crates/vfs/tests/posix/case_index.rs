//! Names are found without regard to case, whichever process changes the directory.

use std::fs;
use std::sync::Arc;

use proto::file::{Existing, FileOp, KindWanted, OpenPlan, Outcome};
use vfs::posix::{DIRECTORIES_MAX, Options};
use vfs::{Attempt, Effort, FileSystem};
use wire::Status;
use wire::access::AccessMask;

use crate::share::LocalDirectory;

const LOOK: AccessMask = AccessMask::FILE_READ_ATTRIBUTES;

/// The spelling of a name in the share; `None` if it has no such name.
fn spelled(local: &LocalDirectory, name: &str) -> Option<String> {
    match local.share.open_for(name, LOOK) {
        Ok(opened) => {
            local.share.close(opened.file);
            Some(opened.path.as_str().to_owned())
        }
        Err(Status::OBJECT_NAME_NOT_FOUND | Status::OBJECT_PATH_NOT_FOUND) => None,
        Err(status) => panic!("{name}: {status:?}"),
    }
}

#[test]
fn changes_by_others_are_seen() {
    let local = LocalDirectory::new(Options::default());
    assert_eq!(spelled(&local, "README"), None);
    fs::write(local.path("Readme"), b"").expect("a file");
    assert_eq!(spelled(&local, "README").as_deref(), Some("Readme"));
    fs::rename(local.path("Readme"), local.path("Other")).expect("a rename");
    assert_eq!(spelled(&local, "README"), None);
    assert_eq!(spelled(&local, "OTHER").as_deref(), Some("Other"));
    fs::rename(local.path("Other"), local.path("oTHER")).expect("a rename");
    assert_eq!(spelled(&local, "OTHER").as_deref(), Some("oTHER"));
    fs::remove_file(local.path("oTHER")).expect("removed");
    assert_eq!(spelled(&local, "OTHER"), None);
    fs::create_dir(local.path("Dir")).expect("a directory");
    fs::write(local.path("Dir/File"), b"").expect("a file");
    assert_eq!(spelled(&local, "DIR/FILE").as_deref(), Some("Dir/File"));
    fs::remove_dir_all(local.path("Dir")).expect("removed");
    assert_eq!(spelled(&local, "DIR/FILE"), None);
    fs::create_dir(local.path("dIR")).expect("a directory");
    fs::write(local.path("dIR/fILE"), b"").expect("a file");
    assert_eq!(spelled(&local, "DIR/FILE").as_deref(), Some("dIR/fILE"));
    fs::rename(local.path("dIR"), local.path("Moved")).expect("a rename");
    assert_eq!(spelled(&local, "DIR/FILE"), None);
    assert_eq!(spelled(&local, "MOVED/FILE").as_deref(), Some("Moved/fILE"));
}

#[test]
fn the_exact_name_comes_first() {
    let local = LocalDirectory::new(Options::default());
    for name in ["abc", "ABC", "Abc"] {
        fs::write(local.path(name), b"").expect("a file");
    }
    for name in ["abc", "ABC", "Abc"] {
        assert_eq!(spelled(&local, name).as_deref(), Some(name));
    }
    assert_eq!(spelled(&local, "aBC").as_deref(), Some("ABC"));
}

#[test]
fn more_changes_than_the_kernel_queues_are_not_missed() {
    let local = LocalDirectory::new(Options::default());
    fs::write(local.path("First"), b"").expect("a file");
    assert_eq!(spelled(&local, "FIRST").as_deref(), Some("First"));
    // The queue of inotify holds 16,384 events by default.
    for n in 0..10_000 {
        fs::write(local.path(&format!("f{n}")), b"").expect("a file");
        fs::remove_file(local.path(&format!("f{n}"))).expect("removed");
    }
    fs::rename(local.path("First"), local.path("Last")).expect("a rename");
    assert_eq!(spelled(&local, "FIRST"), None);
    assert_eq!(spelled(&local, "LAST").as_deref(), Some("Last"));
    assert_eq!(spelled(&local, "F9999"), None);
}

#[test]
fn another_process_changes_the_directory_constantly() {
    let local = LocalDirectory::new(Options::default());
    let at = local.path("");
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            for n in 0..3000_u32 {
                fs::write(at.join(format!("Stays{n}")), b"").expect("a file");
                fs::write(at.join(format!("Removed{n}")), b"").expect("a file");
                fs::remove_file(at.join(format!("Removed{n}"))).expect("removed");
            }
        });
        while !other.is_finished() {
            let _ = spelled(&local, "STAYS0");
            // The index is dropped and built again in the middle of the loop.
            let small = spelled(&local, "REMOVED1");
            assert!(small.is_none() || small.as_deref() == Some("Removed1"));
        }
    });
    for n in 0..3000 {
        let stays = spelled(&local, &format!("STAYS{n}"));
        assert_eq!(stays, Some(format!("Stays{n}")));
        assert_eq!(spelled(&local, &format!("REMOVED{n}")), None);
    }
}

#[test]
fn of_two_that_differ_in_case_one_is_made() {
    let local = LocalDirectory::new(Options::default());
    let make = |name: String| {
        let plan = local
            .share
            .plan(&name, Existing::OpenOrCreate, KindWanted::File);
        let opened = local.share.open_plan(plan).expect("an open");
        local.share.close(opened.file);
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
    assert_eq!(local.share.names("").len(), 2000);
}

#[test]
fn the_index_keeps_to_its_bytes() {
    let index_bytes = 100_000;
    let local = LocalDirectory::new(Options {
        index_bytes,
        ..Options::default()
    });
    for d in 0..10 {
        local.share.close(local.share.directory(&format!("d{d}")));
        for n in 0..300 {
            fs::write(local.path(&format!("d{d}/Name{n}")), b"").expect("a file");
        }
    }
    for round in 0..3 {
        for d in 0..10 {
            let name = spelled(&local, &format!("D{d}/NAME{round}"));
            assert_eq!(name, Some(format!("d{d}/Name{round}")));
            let held = local.posix.usage();
            assert!(held.index_bytes <= index_bytes, "{held:?}");
        }
    }
    assert!(local.posix.usage().indexed_directories > 1);
}

#[test]
fn a_directory_that_outgrows_the_bound_is_scanned_each_time() {
    let index_bytes = 20_000;
    let local = LocalDirectory::new(Options {
        index_bytes,
        ..Options::default()
    });
    for n in 0..1000 {
        fs::write(local.path(&format!("Name{n}")), b"").expect("a file");
    }
    assert_eq!(spelled(&local, "NAME999").as_deref(), Some("Name999"));
    assert_eq!(local.posix.usage().indexed_directories, 0);
    fs::rename(local.path("Name999"), local.path("nAME999")).expect("a rename");
    assert_eq!(spelled(&local, "NAME999").as_deref(), Some("nAME999"));
}

#[test]
fn the_directory_not_used_for_the_longest_goes_first() {
    let local = LocalDirectory::new(Options::default());
    for d in 0..DIRECTORIES_MAX + 10 {
        fs::create_dir(local.path(&format!("d{d}"))).expect("a directory");
    }
    let look = |d: usize| assert_eq!(spelled(&local, &format!("d{d}/none")), None);
    look(0);
    for d in 1..DIRECTORIES_MAX + 10 {
        look(d);
        look(0);
    }
    assert_eq!(local.posix.usage().indexed_directories, DIRECTORIES_MAX);
    // A directory in constant use is still in the index, an unused one is not.
    let look_cached = |d: usize| {
        let plan = local
            .share
            .plan(&format!("d{d}/none"), Existing::Open, KindWanted::Any);
        local.posix.execute(&FileOp::Open(plan), Effort::Cached)
    };
    let missing = |attempt| matches!(attempt, Attempt::Done(Err(Status::OBJECT_NAME_NOT_FOUND)));
    assert!(missing(look_cached(0)));
    assert!(!missing(look_cached(1)));
}

/// The creation of n files must not read n^2 names: after the first, the index answers without a
/// scan.
#[test]
fn new_files_need_no_scan() {
    let local = LocalDirectory::new(Options::default());
    let share = &local.share;
    share.close(share.create("first").expect("a new file").file);
    for n in 0..500 {
        let name = format!("File{n}");
        let look = share.plan(&name, Existing::Open, KindWanted::Any);
        let attempt = local.posix.execute(&FileOp::Open(look), Effort::Cached);
        assert!(matches!(
            attempt,
            Attempt::Done(Err(Status::OBJECT_NAME_NOT_FOUND))
        ));
        let plan = share.plan(&name, Existing::Create, KindWanted::File);
        let attempt = local.posix.execute(&FileOp::Open(plan), Effort::Cached);
        let Attempt::Done(Ok(Outcome::Opened(opened))) = attempt else {
            panic!("{name}: {attempt:?}");
        };
        assert!(opened.created);
        share.close(opened.file);
    }
}

#[test]
fn a_directory_that_may_be_searched_and_not_read_is_searched() {
    let local = LocalDirectory::new(Options::default());
    fs::create_dir(local.path("Dir")).expect("a directory");
    fs::write(local.path("Dir/File"), b"x").expect("a file");
    let search = std::os::unix::fs::PermissionsExt::from_mode(0o711);
    fs::set_permissions(local.path("Dir"), search).expect("a chmod");
    if !vfs::identity::switches() {
        println!("skipped: needs root");
        return;
    }
    let plan = local
        .share
        .plan("DIR/FILE", Existing::Open, KindWanted::Any);
    let plan = OpenPlan {
        token: Arc::clone(&local.share.token),
        access: LOOK,
        ..plan
    };
    let opened = local.share.open_plan(plan).expect("the file");
    assert_eq!(opened.path.as_str(), "Dir/File");
    let list = local.share.open_for("dir", AccessMask::FILE_LIST_DIRECTORY);
    assert_eq!(list, Err(Status::ACCESS_DENIED));
}
