//! No path leads outside the share, and special files cannot be opened.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};

use proto::file::{Existing, FileKind, KindWanted, OpenPlan, Select};
use rustix::fs::{CWD, FileType, Mode, RenameFlags, mknodat, renameat_with};
use vfs::posix::Options;
use wire::Status;
use wire::access::AccessMask;

use crate::share::LocalDirectory;

/// A directory with a file `secret` next to it, which no path may reach.
fn local_with_secret() -> (LocalDirectory, tempfile::TempDir) {
    let local = LocalDirectory::new(Options::default());
    local.path("");
    let outside = tempfile::TempDir::new().expect("a directory");
    fs::write(outside.path().join("secret"), b"outside").expect("a file");
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    fs::set_permissions(outside.path(), open).expect("a chmod");
    (local, outside)
}

/// Ends the race on drop, also after a failed assertion.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_link_that_leaves_the_share_leads_nowhere() {
    let (local, outside) = local_with_secret();
    let share = &local.share;
    symlink(outside.path(), local.path("absolute")).expect("a link");
    let name = outside
        .path()
        .file_name()
        .expect("a name")
        .to_str()
        .expect("ASCII");
    symlink(format!("../{name}"), local.path("climbing")).expect("a link");
    symlink(outside.path().join("secret"), local.path("file")).expect("a link");
    fs::create_dir(local.path("d")).expect("a directory");
    symlink(format!("../../{name}"), local.path("d/deep")).expect("a link");
    for link in ["absolute", "climbing", "d/deep", "ABSOLUTE", "D/Deep"] {
        let below = format!("{link}/secret");
        assert_eq!(
            share.open(&below),
            Err(Status::OBJECT_PATH_NOT_FOUND),
            "{below}"
        );
        assert_eq!(
            share.create(&below),
            Err(Status::OBJECT_PATH_NOT_FOUND),
            "{below}"
        );
        assert_eq!(
            share.open(link),
            Err(Status::OBJECT_NAME_NOT_FOUND),
            "{link}"
        );
    }
    assert_eq!(share.open("file"), Err(Status::OBJECT_NAME_NOT_FOUND));
    assert_eq!(share.create("file"), Err(Status::OBJECT_NAME_COLLISION));
    let plan = share.plan("file", Existing::OpenOrCreate, KindWanted::Any);
    assert_eq!(share.open_plan(plan), Err(Status::OBJECT_NAME_NOT_FOUND));
    let root = share
        .open_for("", AccessMask::FILE_LIST_DIRECTORY)
        .expect("the root")
        .file;
    assert_eq!(share.look_up(root, "absolute/secret"), Ok(None));
    assert_eq!(share.look_up(root, "file"), Ok(None));
    let mine = share.file("mine", b"");
    let moved = share.rename(mine, "absolute/mine", false);
    assert_eq!(moved, Err(Status::OBJECT_PATH_NOT_FOUND));
    let linked = share.link(mine, "absolute/mine", false);
    assert_eq!(linked, Err(Status::OBJECT_PATH_NOT_FOUND));
    local.path("");
    assert_eq!(fs::read_dir(outside.path()).expect("a listing").count(), 1);
}

#[test]
fn a_link_within_the_share_is_followed() {
    let (local, _outside) = local_with_secret();
    let share = &local.share;
    share.directory("Target");
    share.directory("d");
    share.file("Target/f", b"data");
    symlink("../Target", local.path("d/link")).expect("a link");
    symlink("Target/f", local.path("file")).expect("a link");
    assert_eq!(share.content("d/link/f"), Ok(b"data".to_vec()));
    assert_eq!(share.content("D/LINK/F"), Ok(b"data".to_vec()));
    assert_eq!(share.content("file"), Ok(b"data".to_vec()));
    let link = share.open("file").expect("the file").file;
    share.unlink(link).expect("the link goes, not the file");
    assert_eq!(share.names(""), ["Target", "d"]);
    assert_eq!(share.content("Target/f"), Ok(b"data".to_vec()));
}

#[test]
fn a_link_to_nothing_is_shown_and_can_be_removed() {
    let (local, _outside) = local_with_secret();
    let share = &local.share;
    symlink("nothing", local.path("dangling")).expect("a link");
    assert_eq!(share.open("dangling"), Err(Status::OBJECT_NAME_NOT_FOUND));
    let root = share
        .open_for("", AccessMask::FILE_LIST_DIRECTORY)
        .expect("the root")
        .file;
    let entries = share.list(root, true, Select::All, 10).expect("a listing");
    assert_eq!(entries[2].metadata.kind, FileKind::Link);
    let plan = share.plan("DANGLING", Existing::Open, KindWanted::Any);
    let access = AccessMask::DELETE | AccessMask::FILE_READ_ATTRIBUTES;
    let link = share
        .open_plan(OpenPlan {
            access,
            open_link: true,
            ..plan
        })
        .expect("the link");
    assert_eq!(link.metadata.kind, FileKind::Link);
    share.unlink(link.file).expect("unlinked");
    assert_eq!(share.names(""), Vec::<String>::new());
}

#[test]
fn a_directory_that_turns_into_a_link_does_not_lead_out() {
    let (local, outside) = local_with_secret();
    let share = &local.share;
    share.directory("swap");
    share.file("swap/secret", b"inside");
    symlink(outside.path(), local.path("other")).expect("a link");
    let (one, two) = (local.path("swap"), local.path("other"));
    let is_over = AtomicBool::new(false);
    let mut opens = 0;
    std::thread::scope(|scope| {
        let _over = Over(&is_over);
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let exchange = RenameFlags::EXCHANGE;
                renameat_with(CWD, &one, CWD, &two, exchange).expect("an exchange");
            }
        });
        for n in 0..1000 {
            if let Ok(bytes) = share.content("swap/secret") {
                assert_eq!(bytes, b"inside");
                opens += 1;
            }
            let _ = share
                .content("SWAP/SECRET")
                .map(|bytes| assert_eq!(bytes, b"inside"));
            if let Ok(new) = share.create(&format!("swap/new{n}")) {
                share.close(new.file);
            }
        }
    });
    local.path("");
    println!("{opens} opens went inside");
    assert_eq!(fs::read_dir(outside.path()).expect("a listing").count(), 1);
}

#[test]
fn a_file_that_turns_into_a_link_does_not_lead_out() {
    let (local, outside) = local_with_secret();
    let share = &local.share;
    share.file("swap", b"inside");
    symlink(outside.path().join("secret"), local.path("other")).expect("a link");
    let (one, two) = (local.path("swap"), local.path("other"));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _over = Over(&is_over);
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let exchange = RenameFlags::EXCHANGE;
                renameat_with(CWD, &one, CWD, &two, exchange).expect("an exchange");
            }
        });
        for _ in 0..1000 {
            let _ = share
                .content("swap")
                .map(|bytes| assert_eq!(bytes, b"inside"));
        }
    });
}

#[test]
fn special_files_are_shown_and_never_opened_for_data() {
    let (local, _outside) = local_with_secret();
    let share = &local.share;
    let mode = Mode::from_raw_mode(0o666);
    mknodat(CWD, local.path("fifo"), FileType::Fifo, mode, 0).expect("a fifo");
    let _socket = std::os::unix::net::UnixListener::bind(local.path("socket")).expect("a socket");
    let open = |name, access, open_link| {
        let plan = share.plan(name, Existing::Open, KindWanted::Any);
        share.open_plan(OpenPlan {
            access,
            open_link,
            ..plan
        })
    };
    for name in ["fifo", "socket"] {
        for access in [AccessMask::FILE_READ_DATA, AccessMask::FILE_WRITE_DATA] {
            let refused = open(name, access, true);
            assert_eq!(refused, Err(Status::ACCESS_DENIED), "{name}");
            let refused = open(name, access, false);
            assert_eq!(refused, Err(Status::IO_REPARSE_TAG_NOT_HANDLED), "{name}");
        }
        let seen = open(name, AccessMask::MAXIMUM_ALLOWED, true).expect("seen");
        assert_eq!(seen.metadata.kind, FileKind::Special);
        assert_eq!(
            share.read(seen.file, 0, 1),
            Err(Status::INVALID_DEVICE_REQUEST)
        );
        assert!(vfs::FileSystem::descriptor(&*local.posix, seen.file).is_none());
    }
}

#[test]
fn names_that_look_like_paths_are_mapped() {
    use std::os::unix::ffi::OsStrExt;
    let (local, _outside) = local_with_secret();
    let share = &local.share;
    let bytes = std::ffi::OsStr::from_bytes(b"not\xFFutf8");
    fs::write(local.path("").join(bytes), b"").expect("a file");
    fs::write(local.path("..\\climb"), b"").expect("a file");
    fs::write(local.path("what?"), b"").expect("a file");
    let wanted = ["..\u{f026}climb", "not\u{efff}utf8", "what\u{f025}"];
    assert_eq!(share.names(""), wanted);
}
