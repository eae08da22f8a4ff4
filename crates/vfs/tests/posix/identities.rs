//! Every operation runs under the credentials of its token.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::sync::Arc;

use proto::file::{
    BasicChanges, Existing, FileOp, KindWanted, LocalOpen, OpenPlan, Operation, Outcome,
};
use proto::path::{SharePath, StreamName};
use proto::token::Token;
use rustix::process::{getegid, geteuid, getgroups};
use vfs::posix::Options;
use vfs::{Attempt, Effort, FileSystem, identity};
use wire::Status;
use wire::access::{AccessMask, FileAttributes};

use crate::share::{LocalDirectory, Share, user};

const READ: AccessMask = AccessMask::FILE_READ_DATA;
const WRITE: AccessMask = AccessMask::FILE_WRITE_DATA;

/// Whether the process can switch to other users; prints a message if not.
fn is_root() -> bool {
    if !identity::switches() {
        println!("skipped: only root can become others");
    }
    identity::switches()
}

/// A directory in which every user may create files.
fn open_directory() -> LocalDirectory {
    let local = LocalDirectory::new(Options::default());
    fs::set_permissions(local.path(""), PermissionsExt::from_mode(0o777)).expect("a chmod");
    local
}

fn set_mode(local: &LocalDirectory, name: &str, mode: u32) {
    fs::set_permissions(local.path(name), PermissionsExt::from_mode(mode)).expect("a chmod");
}

/// The effective capabilities of this thread.
fn capabilities() -> u64 {
    let status = fs::read_to_string("/proc/thread-self/status").expect("the status");
    let line = status
        .lines()
        .find(|line| line.starts_with("CapEff:"))
        .expect("a line");
    u64::from_str_radix(line[7..].trim(), 16).expect("a number")
}

#[test]
fn private_files_stay_private() {
    if !is_root() {
        return;
    }
    let local = open_directory();
    let (ann, bob) = (
        local.as_user(user(2001, &[])),
        local.as_user(user(2002, &[])),
    );
    ann.file("private", b"ann's");
    set_mode(&local, "private", 0o600);
    ann.directory("home");
    ann.file("home/diary", b"ann's");
    set_mode(&local, "home", 0o700);
    let denied = Status::ACCESS_DENIED;
    for _ in 0..3 {
        assert_eq!(bob.open_for("private", READ), Err(denied));
        assert_eq!(bob.open_for("private", WRITE), Err(denied));
        assert_eq!(bob.open_for("PRIVATE", READ), Err(denied));
        let most = bob
            .open_for("private", AccessMask::MAXIMUM_ALLOWED)
            .expect("its times");
        assert!(!most.granted.intersects(READ | WRITE));
        assert_eq!(bob.open_for("home", READ), Err(denied));
        assert_eq!(bob.open("home/diary"), Err(denied));
        assert_eq!(bob.open("HOME/DIARY"), Err(denied));
        assert_eq!(bob.create("home/new"), Err(denied));
        assert_eq!(bob.look_up(most.file, "home/diary"), Err(denied));
        assert_eq!(ann.content("private"), Ok(b"ann's".to_vec()));
        assert_eq!(ann.content("home/diary"), Ok(b"ann's".to_vec()));
    }
}

#[test]
fn new_files_belong_to_their_creator() {
    if !is_root() {
        return;
    }
    let local = open_directory();
    let ann = local.as_user(Arc::new(Token::new(2001, 3001, vec![3002])));
    let bob = local.as_user(user(2002, &[]));
    let of_ann = ann.create("ann").expect("a new file").metadata;
    let of_bob = bob.create("bob").expect("a new file").metadata;
    bob.directory("dir");
    assert_eq!((of_ann.uid, of_ann.gid), (2001, 3001));
    assert_eq!((of_bob.uid, of_bob.gid), (2002, 2002));
    let directory = fs::metadata(local.path("dir")).expect("metadata");
    assert_eq!((directory.uid(), directory.gid()), (2002, 2002));
}

#[test]
fn a_supplementary_group_grants_access() {
    if !is_root() {
        return;
    }
    let local = open_directory();
    fs::write(local.path("f"), b"x").expect("a file");
    chown(local.path("f"), Some(0), Some(3002)).expect("a chown");
    set_mode(&local, "f", 0o640);
    assert!(
        local
            .as_user(user(2001, &[3001, 3002]))
            .open_for("f", READ)
            .is_ok()
    );
    let other = local.as_user(user(2001, &[3001]));
    assert_eq!(other.open_for("f", READ), Err(Status::ACCESS_DENIED));
}

#[test]
fn the_credentials_are_the_threads_alone_and_take_all_capabilities() {
    if !is_root() {
        return;
    }
    identity::own().expect("the server itself");
    let full = capabilities();
    assert_ne!(full, 0);
    let token = Arc::new(Token::new(2001, 3001, vec![3002, 3003]));
    identity::assume(&token).expect("assumed");
    assert_eq!(capabilities(), 0);
    assert_eq!((geteuid().as_raw(), getegid().as_raw()), (2001, 3001));
    let groups: Vec<u32> = getgroups()
        .expect("groups")
        .iter()
        .map(|gid| gid.as_raw())
        .collect();
    assert_eq!(groups, [3002, 3003]);
    // A new thread inherits the credentials of its parent, and treats them as unknown.
    std::thread::scope(|scope| {
        scope.spawn(|| {
            assert_eq!(geteuid().as_raw(), 2001);
            identity::own().expect("the server itself");
            assert_eq!((geteuid().as_raw(), capabilities()), (0, full));
        });
    });
    assert_eq!(geteuid().as_raw(), 2001);
    identity::assume(&user(2002, &[])).expect("assumed");
    assert_eq!((geteuid().as_raw(), capabilities()), (2002, 0));
    assert_eq!(getgroups().expect("groups").len(), 0);
    identity::own().expect("the server itself");
    assert_eq!((geteuid().as_raw(), capabilities()), (0, full));
}

#[test]
fn a_token_that_cannot_be_assumed_fails() {
    if !is_root() {
        return;
    }
    let local = open_directory();
    for token in [
        Token::new(u32::MAX, 1, vec![]),
        Token::new(1, u32::MAX, vec![]),
        Token::new(1, 1, vec![u32::MAX]),
    ] {
        let invalid = local.as_user(Arc::new(token));
        assert_eq!(invalid.create("f"), Err(Status::ACCESS_DENIED));
        // The next user has its own credentials.
        let ann = local.as_user(user(2001, &[]));
        let made = ann.create("f").expect("a new file");
        assert_eq!(made.metadata.uid, 2001);
        ann.unlink(made.file).expect("unlinked");
    }
}

#[test]
fn many_threads_keep_their_users_apart() {
    if !is_root() {
        return;
    }
    let local = open_directory();
    std::thread::scope(|scope| {
        for thread in 0..4_u32 {
            let local = &local;
            scope.spawn(move || {
                for n in 0..200_u32 {
                    let uid = 2001 + (n + thread) % 3;
                    let share = local.as_user(user(uid, &[uid + 1000]));
                    let name = format!("f{thread}-{n}");
                    let made = share.create(&name).expect("a new file");
                    assert_eq!((made.metadata.uid, made.metadata.gid), (uid, uid));
                    share.close(made.file);
                }
            });
        }
    });
}

#[test]
fn the_open_keeps_the_token_it_was_opened_with() {
    if !is_root() {
        return;
    }
    let local = open_directory();
    let (ann, bob) = (
        local.as_user(user(2001, &[])),
        local.as_user(user(2002, &[])),
    );
    let of_ann = ann.file("ann", b"x");
    set_mode(&local, "", 0o1777);
    bob.file("bob", b"x");
    // The open belongs to ann in every thread, and ann may not remove a file of bob.
    let of_bob = ann.open_for("bob", READ).expect("readable").file;
    assert_eq!(bob.unlink(of_bob), Err(Status::ACCESS_DENIED));
    let check = bob.unit(&FileOp::OnOpen(of_bob, Operation::CheckDelete));
    assert_eq!(check, Err(Status::ACCESS_DENIED));
    assert_eq!(bob.unlink(of_ann), Ok(()));
}

#[test]
fn attributes_are_known_without_the_right_to_read() {
    if !is_root() {
        return;
    }
    let local = open_directory();
    let (ann, bob) = (
        local.as_user(user(2001, &[])),
        local.as_user(user(2002, &[])),
    );
    let file = ann.file("f", b"x");
    let changes = |attributes| BasicChanges {
        attributes: Some(attributes),
        ..BasicChanges::default()
    };
    ann.set_basic(file, changes(FileAttributes::SYSTEM))
        .expect("set");
    set_mode(&local, "f", 0o600);
    let seen = bob
        .open_for("f", AccessMask::FILE_READ_ATTRIBUTES)
        .expect("seen");
    assert_eq!(seen.metadata.attributes, FileAttributes::SYSTEM);
    let set = bob.set_basic(seen.file, changes(FileAttributes::HIDDEN));
    assert_eq!(set, Err(Status::ACCESS_DENIED));
    // The owner changes attributes and times of a file without write permission.
    set_mode(&local, "f", 0o400);
    let mine = ann
        .open_for("f", AccessMask::FILE_WRITE_ATTRIBUTES)
        .expect("mine")
        .file;
    let metadata = ann
        .set_basic(mine, changes(FileAttributes::HIDDEN))
        .expect("set");
    assert_eq!(metadata.attributes, FileAttributes::HIDDEN);
    assert_eq!(geteuid().as_raw(), 2001);
}

#[test]
fn a_write_takes_the_set_user_id_bit_away() {
    if !is_root() {
        return;
    }
    let local = open_directory();
    fs::write(local.path("f"), b"x").expect("a file");
    set_mode(&local, "f", 0o4777);
    let bob = local.as_user(user(2002, &[]));
    let file = bob.open_for("f", WRITE).expect("an open").file;
    identity::own().expect("the server itself");
    let attempt = local
        .posix
        .write(file, Some(0), b"evil", false, Effort::Blocking);
    assert_eq!(attempt, Attempt::Done(Ok(4)));
    let mode = fs::metadata(local.path("f")).expect("metadata").mode();
    assert_eq!(mode & 0o7000, 0);
}

#[test]
fn an_access_control_list_counts() {
    if !is_root() {
        return;
    }
    let local = open_directory();
    let ann = local.as_user(user(2001, &[]));
    ann.file("f", b"x");
    set_mode(&local, "f", 0o600);
    // Version 2: tag, permissions, id. The owner rw, user 2002 r, group none, mask r, others none.
    let none = u32::MAX;
    let entries = [
        (1, 6, none),
        (2, 4, 2002),
        (4, 0, none),
        (16, 4, none),
        (32, 0, none),
    ];
    let mut list = 2_u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in entries {
        list.extend(u16::to_le_bytes(tag));
        list.extend(u16::to_le_bytes(permissions));
        list.extend(u32::to_le_bytes(id));
    }
    let flags = rustix::fs::XattrFlags::empty();
    let path = local.path("f");
    if let Err(error) = rustix::fs::setxattr(&path, "system.posix_acl_access", &list, flags) {
        println!("skipped: no access control lists here ({error})");
        return;
    }
    assert_eq!(
        local.as_user(user(2002, &[])).content("f"),
        Ok(b"x".to_vec())
    );
    let bob = local.as_user(user(2002, &[]));
    assert_eq!(bob.open_for("f", WRITE), Err(Status::ACCESS_DENIED));
    let most = bob
        .open_for("f", AccessMask::MAXIMUM_ALLOWED)
        .expect("most")
        .granted;
    assert!(most.contains(READ) && !most.intersects(WRITE));
    let other = local.as_user(user(2003, &[]));
    assert_eq!(other.open_for("f", READ), Err(Status::ACCESS_DENIED));
}

#[test]
fn a_close_needs_no_rights() {
    let local = LocalDirectory::new(Options::default());
    let file = local.share.file("f", b"x");
    let attempt = local
        .posix
        .execute(&FileOp::OnOpen(file, Operation::Close), Effort::Cached);
    assert!(matches!(attempt, Attempt::Done(Ok(Outcome::Done))));
    assert_eq!(local.posix.usage().opens, 0);
}

/// Opens a stream of a file, or creates it.
fn stream_of(share: &Share, file: &str, access: AccessMask) -> Result<LocalOpen, Status> {
    let plan = share.plan("", Existing::OpenOrCreate, KindWanted::Any);
    let path = SharePath::from_trusted(file).with_stream(StreamName::new("s"));
    let plan = OpenPlan {
        path,
        access,
        ..plan
    };
    share.open_plan(plan).map(|opened| opened.file)
}

#[test]
fn streams_have_the_permissions_of_their_file() {
    if !is_root() {
        return;
    }
    let local = open_directory();
    let (ann, bob) = (
        local.as_user(user(2001, &[])),
        local.as_user(user(2002, &[])),
    );
    ann.close(ann.file("f", b""));
    let own = stream_of(&ann, "f", READ | WRITE).expect("the owner writes");
    ann.write(own, Some(0), b"ann's").expect("a stream");
    set_mode(&local, "f", 0o600);
    assert_eq!(stream_of(&bob, "f", READ), Err(Status::ACCESS_DENIED));
    set_mode(&local, "f", 0o644);
    assert_eq!(stream_of(&bob, "f", WRITE), Err(Status::ACCESS_DENIED));
    let reading = stream_of(&bob, "f", READ).expect("everyone reads");
    assert_eq!(bob.read(reading, 0, 9), Ok(b"ann's".to_vec()));
    // The directory permits bob to delete the file, and not to change it.
    let deleting = stream_of(&bob, "f", AccessMask::DELETE).expect("bob may delete the file");
    let path = SharePath::from_trusted("f").with_stream(StreamName::new("s"));
    let removed = bob.unit(&FileOp::OnOpen(deleting, Operation::Unlink { path }));
    assert_eq!(removed, Err(Status::ACCESS_DENIED));
    // The right of an open stays after a chmod, as on Windows.
    set_mode(&local, "f", 0o400);
    ann.write(own, Some(0), b"ANN")
        .expect("the open has the right");
    assert_eq!(ann.read(own, 0, 9), Ok(b"ANN's".to_vec()));
}
