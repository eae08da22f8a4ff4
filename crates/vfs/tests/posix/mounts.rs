//! File systems that are mounted at or below the root of a share.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use proto::file::{Existing, FileOp, KindWanted, LocalOpen, Metadata, Operation, VolumeInfo};
use vfs::identity;
use vfs::posix::Options;
use wire::Status;
use wire::access::AccessMask;

use crate::share::{LocalDirectory, Share};

/// A mounted tmpfs; dropping it unmounts it.
struct Mount(PathBuf);

impl Mount {
    /// Mounts a tmpfs; `None` without the right to mount.
    fn new(at: &Path, size: &str) -> Option<Self> {
        identity::own().expect("the server itself");
        let options = format!("size={size},mode=777");
        let arguments = ["-t", "tmpfs", "-o", &options, "none"];
        let done = Command::new("mount").args(arguments).arg(at).output();
        match done {
            Ok(done) if done.status.success() => Some(Self(at.to_owned())),
            _ => {
                println!("skipped: mounts are not permitted here");
                None
            }
        }
    }

    /// Unmounts it, and fails if it is busy.
    fn unmount(&self) -> bool {
        identity::own().expect("the server itself");
        let done = Command::new("umount").arg(&self.0).status();
        done.is_ok_and(|status| status.success())
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = identity::own();
        let _ = Command::new("umount")
            .args(["-q", "-l"])
            .arg(&self.0)
            .status();
    }
}

fn volume(share: &Share, file: LocalOpen) -> VolumeInfo {
    let done = share.execute(&FileOp::OnOpen(file, Operation::Volume));
    done.expect("a volume").expect_volume()
}

fn metadata(share: &Share, path: &str) -> Metadata {
    let opened = share.open_for(path, AccessMask::FILE_READ_ATTRIBUTES);
    let opened = opened.expect("it exists");
    share.close(opened.file);
    opened.metadata
}

fn find_root(local: &LocalDirectory) -> Result<(), Status> {
    let share = proto::file::ShareId(3);
    let token = local.share.token.clone();
    local.share.unit(&FileOp::FindRoot { share, token })
}

/// Bug: the server kept a descriptor of the root that it opened at its start.
/// Damage: a disk that was mounted later was never seen, and one that was mounted before was busy.
/// Cause: the path of the share was resolved once.
#[test]
fn a_disk_that_comes_and_leaves_is_seen_and_never_busy() {
    let local = LocalDirectory::new(Options::default());
    local.share.close(local.share.file("below", b""));
    let Some(first) = Mount::new(&local.path(""), "1M") else {
        return;
    };
    assert_eq!(
        local.share.open("below").map(drop),
        Err(Status::OBJECT_NAME_NOT_FOUND)
    );
    let file = local.share.file("first", b"1");
    assert!(!first.unmount(), "an open file keeps the disk busy");
    local.share.close(file);
    assert!(first.unmount());
    assert_eq!(local.share.names(""), ["below"]);
    let second = Mount::new(&local.path(""), "1M").expect("a mount");
    assert_eq!(local.share.names(""), [""; 0]);
    let open = local.share.file("second", b"2");
    // An open stays on its disk, even if the disk leaves.
    drop(second);
    assert_eq!(local.share.read(open, 0, 1), Ok(b"2".to_vec()));
    assert_eq!(local.share.rename(open, "below", true).map(drop), Ok(()));
    assert_eq!(local.share.names(""), ["below"]);
    local.share.close(open);
}

#[test]
fn a_missing_root_is_no_network_name_until_it_exists_again() {
    let local = LocalDirectory::new(Options::default());
    let (root, aside) = (local.path(""), local.path("").with_extension("aside"));
    assert_eq!(find_root(&local), Ok(()));
    let move_to = |from: &Path, to: &Path| {
        identity::own().expect("the server itself");
        fs::rename(from, to).expect("a rename");
    };
    move_to(&root, &aside);
    assert_eq!(find_root(&local), Err(Status::BAD_NETWORK_NAME));
    let plan = local.share.plan("f", Existing::Create, KindWanted::File);
    let opened = local.share.open_plan(plan);
    assert_eq!(opened.map(drop), Err(Status::NETWORK_NAME_DELETED));
    move_to(&aside, &root);
    assert_eq!(find_root(&local), Ok(()));
    assert!(local.share.create("f").is_ok());
}

#[test]
fn the_space_is_that_of_the_disk_that_holds_the_file() {
    let local = LocalDirectory::new(Options::default());
    local.share.close(local.share.directory("disk"));
    let Some(_mount) = Mount::new(&local.path("disk"), "1M") else {
        return;
    };
    let file = local.share.file("disk/f", b"x");
    let VolumeInfo { block, total, .. } = volume(&local.share, file);
    assert_eq!(u64::from(block) * total, 1 << 20);
    let root = local.share.open("").expect("the root").file;
    let root = volume(&local.share, root);
    assert_ne!(root.total * u64::from(root.block), 1 << 20);
    assert_ne!(root.serial, volume(&local.share, file).serial);
}

/// Bug: two files of two disks of a share had the same number.
/// Damage: clients took them for one file, and saw a loop of directories.
/// Cause: the inode number was the number of the file on every file system.
#[test]
fn files_of_several_disks_have_different_numbers() {
    let local = LocalDirectory::new(Options::default());
    for directory in ["one", "two"] {
        local.share.close(local.share.directory(directory));
    }
    let Some(_one) = Mount::new(&local.path("one"), "1M") else {
        return;
    };
    let _two = Mount::new(&local.path("two"), "1M").expect("a mount");
    fs::create_dir(local.path("one/in")).expect("a directory");
    let _inner = Mount::new(&local.path("one/in"), "1M").expect("a mount");
    local.share.close(local.share.file("one/x", b""));
    local.share.close(local.share.file("two/x", b""));
    let paths = ["", "one", "one/in", "two", "one/x", "two/x"];
    let seen = paths.map(|path| metadata(&local.share, path));
    assert_eq!(seen[1].key.file, seen[3].key.file, "roots of one kind");
    assert_eq!(seen[0].file_id(), seen[0].key.file);
    let mut ids = seen.map(|metadata| metadata.file_id()).to_vec();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), paths.len());
    for metadata in seen {
        assert_eq!(metadata.file_id_128() as u64, metadata.file_id());
    }
    let list = AccessMask::FILE_LIST_DIRECTORY;
    let root = local.share.open_for("", list).expect("the root").file;
    let all = FileOp::OnOpen(
        root,
        Operation::ReadDirectory(proto::file::DirectoryPlan {
            restart: true,
            select: proto::file::Select::All,
            limit: 100,
        }),
    );
    let entries = local
        .share
        .execute(&all)
        .expect("a listing")
        .expect_directory();
    for entry in entries.iter().filter(|entry| !entry.name.starts_with('.')) {
        let opened = metadata(&local.share, &entry.name);
        assert_eq!(entry.metadata.file_id(), opened.file_id(), "{}", entry.name);
    }
}
