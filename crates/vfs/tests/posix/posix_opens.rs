//! Opens of the SMB3 POSIX extensions: modes, owners and extended attributes on disk.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::sync::Arc;

use proto::file::{
    Existing, FileOp, KindWanted, LocalOpen, OpenPlan, Operation, PosixOpen, SecurityChange,
};
use rustix::fs::{XattrFlags, setxattr};
use rustix::io::Errno;
use vfs::identity;
use vfs::posix::Options;
use wire::Status;
use wire::security::{SecurityDescriptor, SecurityInformation, Sid};

use crate::share::{LocalDirectory, Share, user};

/// The descriptor that cifs.ko sends with the mount option `idsfromsid`: the owners of the local
/// process, and a list that grants everything to every user.
fn owned_by(uid: u32, gid: u32) -> SecurityDescriptor {
    let text = format!("O:S-1-5-88-1-{uid}G:S-1-5-88-2-{gid}D:(A;;FA;;;WD)");
    text.parse().expect("SDDL")
}

fn create(
    share: &Share,
    path: &str,
    kind: KindWanted,
    mode: u32,
    security: Option<SecurityDescriptor>,
) -> LocalOpen {
    let plan = OpenPlan {
        posix: Some(PosixOpen { mode }),
        security: security.map(Arc::new),
        ..share.plan(path, Existing::OpenOrCreate, kind)
    };
    share.open_plan(plan).expect("an open").file
}

/// Permission bits, uid and gid of a file.
fn on_disk(local: &LocalDirectory, name: &str) -> (u32, u32, u32) {
    let metadata = fs::symlink_metadata(local.path(name)).expect("a file");
    let bits = metadata.permissions().mode() & 0o7777;
    (bits, metadata.uid(), metadata.gid())
}

fn chown(share: &Share, file: LocalOpen, uid: Option<u32>, gid: Option<u32>) -> Result<(), Status> {
    let mut parts = SecurityInformation(0);
    if uid.is_some() {
        parts |= SecurityInformation::OWNER;
    }
    if gid.is_some() {
        parts |= SecurityInformation::GROUP;
    }
    let descriptor = SecurityDescriptor {
        owner: uid.map(Sid::unix_user),
        group: gid.map(Sid::unix_group),
        ..SecurityDescriptor::default()
    };
    let change = Box::new(SecurityChange { parts, descriptor });
    let op = FileOp::OnOpen(file, Operation::SetSecurity(change));
    share.execute(&op).map(drop)
}

#[test]
fn the_mode_of_the_client_counts_beside_a_descriptor() {
    let local = LocalDirectory::new(Options::default());
    let own = on_disk(&local, "").1;
    for (name, kind) in [("f", KindWanted::File), ("d", KindWanted::Directory)] {
        let asked = Some(owned_by(4242, 4243));
        create(&local.share, name, kind, 0o710, asked);
        let (mode, uid, _) = on_disk(&local, name);
        // The kernel does not give files away for ordinary users; the file is created all the same.
        assert_eq!((mode, uid), (0o710, own), "{name}");
    }
}

#[test]
fn root_gives_files_away_and_keeps_their_modes() {
    if !identity::switches() {
        println!("skipped: needs root");
        return;
    }
    let local = LocalDirectory::new(Options::default());
    let root = local.as_user(user(0, &[]));
    for (name, kind) in [("f", KindWanted::File), ("d", KindWanted::Directory)] {
        create(&root, name, kind, 0o6755, Some(owned_by(5, 6)));
        let (mode, uid, gid) = on_disk(&local, name);
        let bits = mode & !0o7000;
        assert_eq!((bits, uid, gid), (0o755, 5, 6), "{name}");
    }
    assert_eq!(on_disk(&local, "f").0, 0o6755);
    let file = create(&root, "f", KindWanted::File, 0, None);
    assert_eq!(chown(&root, file, Some(7), None), Ok(()));
    assert_eq!(chown(&root, file, None, Some(8)), Ok(()));
    // With the list that cifs.ko sends.
    let op = SecurityChange {
        parts: SecurityInformation::OWNER | SecurityInformation::DACL,
        descriptor: owned_by(9, 8),
    };
    let op = FileOp::OnOpen(file, Operation::SetSecurity(Box::new(op)));
    root.execute(&op).expect("a new owner");
    assert_eq!(chown(&root, file, Some(7), None), Ok(()));
    // chown(2) removes the bits.
    assert_eq!(on_disk(&local, "f"), (0o755, 7, 8));
}

#[test]
fn a_set_group_id_directory_hands_its_group_down() {
    if !identity::switches() {
        println!("skipped: needs root");
        return;
    }
    let local = LocalDirectory::new(Options::default());
    let root = local.as_user(user(0, &[]));
    create(
        &root,
        "d",
        KindWanted::Directory,
        0o755,
        Some(owned_by(5, 6)),
    );
    let directory = local.path("d");
    fs::set_permissions(directory, fs::Permissions::from_mode(0o2775)).expect("a chmod");
    create(&root, "d/f", KindWanted::File, 0o644, Some(owned_by(7, 8)));
    assert_eq!(on_disk(&local, "d/f"), (0o644, 7, 6));
    create(
        &root,
        "d/e",
        KindWanted::Directory,
        0o700,
        Some(owned_by(7, 8)),
    );
    assert_eq!(on_disk(&local, "d/e"), (0o2700, 7, 6));
}

#[test]
fn the_kernel_decides_about_changes_of_owners() {
    let local = LocalDirectory::new(Options::default());
    let file = create(&local.share, "f", KindWanted::File, 0o4755, None);
    let before = on_disk(&local, "f");
    if before.1 == 0 {
        println!("skipped: root may change every owner");
        return;
    }
    let denied = Err(Status::PRIVILEGE_NOT_HELD);
    assert_eq!(chown(&local.share, file, Some(4242), None), denied);
    assert_eq!(chown(&local.share, file, None, Some(4242)), denied);
    assert_eq!(on_disk(&local, "f"), before);
    let own = chown(&local.share, file, Some(before.1), Some(before.2));
    assert_eq!(own, Ok(()));
    let other = SecurityDescriptor {
        owner: Some(Sid::EVERYONE),
        ..SecurityDescriptor::default()
    };
    let change = SecurityChange {
        parts: SecurityInformation::OWNER,
        descriptor: other,
    };
    let op = FileOp::OnOpen(file, Operation::SetSecurity(Box::new(change)));
    let refused = local.share.execute(&op).map(drop);
    assert_eq!(refused, Err(Status::INVALID_OWNER));
}

#[test]
fn empty_values_of_attributes_are_seen() {
    let local = LocalDirectory::new(Options::default());
    local.share.create("f").expect("a new file");
    match setxattr(local.path("f"), "user.empty", b"", XattrFlags::empty()) {
        Err(Errno::OPNOTSUPP) => {
            println!("skipped: no extended attributes here");
            return;
        }
        set => set.expect("an attribute"),
    }
    let count = |file| {
        let outcome = local
            .share
            .execute(&FileOp::OnOpen(file, Operation::QueryEas));
        outcome.expect("attributes").expect_eas().len()
    };
    assert_eq!(
        count(create(&local.share, "f", KindWanted::File, 0, None)),
        1
    );
    let plan = local.share.plan("f", Existing::Open, KindWanted::File);
    let other = local.share.open_plan(plan).expect("an open").file;
    assert_eq!(count(other), 0);
}
