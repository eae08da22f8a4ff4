//! Every operation runs under the credentials of its token, and nobody else's.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::sync::Arc;

use proto::file::{BasicChanges, FileOp, Operation, Outcome};
use proto::token::Token;
use rustix::process::{getegid, geteuid, getgroups};
use vfs::posix::Options;
use vfs::{Attempt, Effort, FileSystem, identity};
use wire::Status;
use wire::access::{AccessMask, FileAttributes};

use crate::share::{Folder, user};

const READ: AccessMask = AccessMask::FILE_READ_DATA;
const WRITE: AccessMask = AccessMask::FILE_WRITE_DATA;

/// Whether the process can become others; says why a test does nothing otherwise.
fn is_root() -> bool {
    if !identity::switches() {
        println!("skipped: only root can become others");
    }
    identity::switches()
}

/// A folder in which everybody may make files.
fn open_folder() -> Folder {
    let folder = Folder::new(Options::default());
    fs::set_permissions(folder.path(""), PermissionsExt::from_mode(0o777)).expect("a chmod");
    folder
}

fn set_mode(folder: &Folder, name: &str, mode: u32) {
    fs::set_permissions(folder.path(name), PermissionsExt::from_mode(mode)).expect("a chmod");
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
fn what_is_private_stays_private() {
    if !is_root() {
        return;
    }
    let folder = open_folder();
    let (ann, bob) = (
        folder.as_user(user(2001, &[])),
        folder.as_user(user(2002, &[])),
    );
    ann.file("private", b"ann's");
    set_mode(&folder, "private", 0o600);
    ann.directory("home");
    ann.file("home/diary", b"ann's");
    set_mode(&folder, "home", 0o700);
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
fn new_files_belong_to_whoever_makes_them() {
    if !is_root() {
        return;
    }
    let folder = open_folder();
    let ann = folder.as_user(Arc::new(Token {
        uid: 2001,
        gid: 3001,
        groups: vec![3002],
    }));
    let bob = folder.as_user(user(2002, &[]));
    let of_ann = ann.create("ann").expect("a new file").metadata;
    let of_bob = bob.create("bob").expect("a new file").metadata;
    bob.directory("dir");
    assert_eq!((of_ann.uid, of_ann.gid), (2001, 3001));
    assert_eq!((of_bob.uid, of_bob.gid), (2002, 2002));
    let directory = fs::metadata(folder.path("dir")).expect("metadata");
    assert_eq!((directory.uid(), directory.gid()), (2002, 2002));
}

#[test]
fn a_further_group_opens_what_it_may() {
    if !is_root() {
        return;
    }
    let folder = open_folder();
    fs::write(folder.path("f"), b"x").expect("a file");
    chown(folder.path("f"), Some(0), Some(3002)).expect("a chown");
    set_mode(&folder, "f", 0o640);
    assert!(
        folder
            .as_user(user(2001, &[3001, 3002]))
            .open_for("f", READ)
            .is_ok()
    );
    let other = folder.as_user(user(2001, &[3001]));
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
    let token = Arc::new(Token {
        uid: 2001,
        gid: 3001,
        groups: vec![3002, 3003],
    });
    identity::assume(&token).expect("assumed");
    assert_eq!(capabilities(), 0);
    assert_eq!((geteuid().as_raw(), getegid().as_raw()), (2001, 3001));
    let groups: Vec<u32> = getgroups()
        .expect("groups")
        .iter()
        .map(|gid| gid.as_raw())
        .collect();
    assert_eq!(groups, [3002, 3003]);
    // A new thread inherits what its parent is, and does not believe that it knows.
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
fn who_cannot_be_assumed_does_nothing() {
    if !is_root() {
        return;
    }
    let folder = open_folder();
    for token in [
        Token {
            uid: u32::MAX,
            gid: 1,
            groups: vec![],
        },
        Token {
            uid: 1,
            gid: u32::MAX,
            groups: vec![],
        },
        Token {
            uid: 1,
            gid: 1,
            groups: vec![u32::MAX],
        },
    ] {
        let nobody = folder.as_user(Arc::new(token));
        assert_eq!(nobody.create("f"), Err(Status::ACCESS_DENIED));
        // And the next one is who they are.
        let ann = folder.as_user(user(2001, &[]));
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
    let folder = open_folder();
    std::thread::scope(|scope| {
        for thread in 0..4_u32 {
            let folder = &folder;
            scope.spawn(move || {
                for n in 0..200_u32 {
                    let uid = 2001 + (n + thread) % 3;
                    let share = folder.as_user(user(uid, &[uid + 1000]));
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
    let folder = open_folder();
    let (ann, bob) = (
        folder.as_user(user(2001, &[])),
        folder.as_user(user(2002, &[])),
    );
    let of_ann = ann.file("ann", b"x");
    set_mode(&folder, "", 0o1777);
    bob.file("bob", b"x");
    // Whoever asks, it is ann's open, and ann may not remove what is bob's.
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
    let folder = open_folder();
    let (ann, bob) = (
        folder.as_user(user(2001, &[])),
        folder.as_user(user(2002, &[])),
    );
    let file = ann.file("f", b"x");
    let changes = |attributes| BasicChanges {
        attributes: Some(attributes),
        ..BasicChanges::default()
    };
    ann.set_basic(file, changes(FileAttributes::SYSTEM))
        .expect("set");
    set_mode(&folder, "f", 0o600);
    let seen = bob
        .open_for("f", AccessMask::FILE_READ_ATTRIBUTES)
        .expect("seen");
    assert_eq!(seen.metadata.attributes, FileAttributes::SYSTEM);
    let set = bob.set_basic(seen.file, changes(FileAttributes::HIDDEN));
    assert_eq!(set, Err(Status::ACCESS_DENIED));
    // The owner changes attributes and times of a file that even the owner may not write.
    set_mode(&folder, "f", 0o400);
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
    let folder = open_folder();
    fs::write(folder.path("f"), b"x").expect("a file");
    set_mode(&folder, "f", 0o4777);
    let bob = folder.as_user(user(2002, &[]));
    let file = bob.open_for("f", WRITE).expect("an open").file;
    identity::own().expect("the server itself");
    let attempt = folder
        .posix
        .write(file, Some(0), b"evil", false, Effort::Blocking);
    assert_eq!(attempt, Attempt::Done(Ok(4)));
    let mode = fs::metadata(folder.path("f")).expect("metadata").mode();
    assert_eq!(mode & 0o7000, 0);
}

#[test]
fn an_access_control_list_counts() {
    if !is_root() {
        return;
    }
    let folder = open_folder();
    let ann = folder.as_user(user(2001, &[]));
    ann.file("f", b"x");
    set_mode(&folder, "f", 0o600);
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
    let path = folder.path("f");
    if let Err(error) = rustix::fs::setxattr(&path, "system.posix_acl_access", &list, flags) {
        println!("skipped: no access control lists here ({error})");
        return;
    }
    assert_eq!(
        folder.as_user(user(2002, &[])).content("f"),
        Ok(b"x".to_vec())
    );
    let bob = folder.as_user(user(2002, &[]));
    assert_eq!(bob.open_for("f", WRITE), Err(Status::ACCESS_DENIED));
    let most = bob
        .open_for("f", AccessMask::MAXIMUM_ALLOWED)
        .expect("most")
        .granted;
    assert!(most.contains(READ) && !most.intersects(WRITE));
    let other = folder.as_user(user(2003, &[]));
    assert_eq!(other.open_for("f", READ), Err(Status::ACCESS_DENIED));
}

#[test]
fn a_close_needs_no_rights() {
    let folder = Folder::new(Options::default());
    let file = folder.share.file("f", b"x");
    let attempt = folder
        .posix
        .execute(&FileOp::OnOpen(file, Operation::Close), Effort::Cached);
    assert!(matches!(attempt, Attempt::Done(Ok(Outcome::Done))));
    assert_eq!(folder.posix.usage().opens, 0);
}
