//! A stock Linux kernel keeps extended attributes, symbolic links, special files and access control
//! lists on a share, in each of the formats that cifs.ko knows.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use anyhow::Result;
use smbeam_tests::mounts::{FAULTS, MountStage, script};
use smbeam_tests::scratch::Scratch;
use smbeam_tests::subject::{ALICE, Subject};
use smbeam_tests::tests;
use smbeam_tests::volume::{FileSystem, Volume};

tests!(
    extended_attributes,
    links_as_files,
    special_files_of_sfu,
    reparse_points_of_nfs,
    reparse_points_of_wsl,
    access_control_lists,
    modes_and_owners_in_security_descriptors,
    shared_extents_on_btrfs,
    shared_extents_on_xfs,
    backups_keep_extended_attributes,
);

/// Length of a file system for shared extents in bytes; btrfs and xfs need more than 300 MB.
const VOLUME_LEN: u64 = 512 << 20;

/// Compares two words, and prints a difference.
const SAME: &str = "same() { test \"$1\" = \"$2\" || { echo \"$3: $1 is not $2\"; exit 1; }; }\n";

fn extended_attributes() -> Result<()> {
    run(
        "user_xattr",
        "echo data > file; mkdir directory\n\
         for name in file directory; do\n\
           setfattr -n user.one -v value $name\n\
           setfattr -n user.TWO -v 0x000102ff $name\n\
         done\n\
         same \"$(getfattr --only-values -n user.one file)\" value one\n\
         same \"$(getfattr -e hex -n user.TWO file | grep TWO)\" user.TWO=0x000102ff two\n\
         same \"$(getfattr -e hex -n user.TWO directory | grep TWO)\" \
           user.TWO=0x000102ff directory\n\
         setfattr -n user.one -v another file\n\
         same \"$(getfattr --only-values -n user.one file)\" another changed\n\
         setfattr -x user.one file\n\
         getfattr -n user.one file && exit 1\n\
         getfattr -d file | grep -q user.TWO\n\
         getfattr -d -m - file | grep -iE 'DOSATTRIB|NTACL' && exit 1\n\
         cp -a file copy; same \"$(getfattr -e hex -n user.TWO copy | grep TWO)\" \
           user.TWO=0x000102ff copy\n",
    )
}

fn links_as_files() -> Result<()> {
    run(
        "mfsymlinks",
        "echo data > file; ln -s file link\n\
         same \"$(readlink link)\" file target; same \"$(cat link)\" data followed\n",
    )
}

fn special_files_of_sfu() -> Result<()> {
    run(
        "sfu",
        "mkfifo fifo; mknod device c 1 3\n\
         same \"$(stat -c %F fifo)\" fifo fifo\n\
         same \"$(stat -c '%F %t %T' device)\" 'character special file 1 3' device\n",
    )
}

fn reparse_points_of_nfs() -> Result<()> {
    special_files("reparse=nfs,symlink=nfs")
}

fn reparse_points_of_wsl() -> Result<()> {
    special_files("reparse=wsl,symlink=wsl")
}

fn special_files(options: &str) -> Result<()> {
    run(
        options,
        "echo data > file; mkdir directory; echo inner > directory/inner\n\
         ln -s file link; ln -s directory/inner deep; ln -s nowhere dangling\n\
         mkfifo fifo; mknod device c 1 3; mknod block b 8 1\n\
         python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"socket\")'\n\
         check() {\n\
           same \"$(readlink link)\" file target; same \"$(cat link)\" data followed\n\
           same \"$(cat deep)\" inner deep; same \"$(readlink dangling)\" nowhere dangling\n\
           same \"$(stat -c %F fifo)\" fifo fifo\n\
           same \"$(stat -c %F socket)\" socket socket\n\
           same \"$(stat -c '%F %t %T' device)\" 'character special file 1 3' device\n\
           same \"$(stat -c '%F %t %T' block)\" 'block special file 8 1' block\n\
         }\n\
         check; sync; echo 3 > /proc/sys/vm/drop_caches; check\n\
         ls -l > /dev/null; rm link fifo; test ! -L link; test -f file\n",
    )
}

fn access_control_lists() -> Result<()> {
    run(
        "cifsacl",
        "echo data > file\n\
         getcifsacl file | grep -q OWNER:\n\
         setcifsacl -a 'ACL:S-1-1-0:ALLOWED/0x0/R' file\n\
         getcifsacl -r file; getcifsacl -r file | grep -q 'S-1-1-0:0x0/0x0/0x1200a9'\n\
         setcifsacl -D 'ACL:S-1-1-0:ALLOWED/0x0/R' file\n\
         getcifsacl -r file | grep 'S-1-1-0:0x0/0x0/0x1200a9' && exit 1\n\
         chmod 600 file; same \"$(stat -c %a file)\" 600 mode\n\
         chmod 640 file; same \"$(stat -c %a file)\" 640 mode\n",
    )
}

/// `modefromsid` and `idsfromsid` keep mode and owner in entries and SIDs of the descriptor. A user
/// of the guest has the ids of the user of the server: other owners are refused, as by Windows.
fn modes_and_owners_in_security_descriptors() -> Result<()> {
    let stage = MountStage::new(Subject::chosen(), "modes")?;
    let work = stage.share.join("work");
    fs::create_dir(&work)?;
    fs::set_permissions(&work, fs::Permissions::from_mode(0o777))?;
    let id = ALICE.id;
    run_on(
        &stage,
        "modefromsid,idsfromsid,noperm,actimeo=0",
        &format!(
            "as() {{ setpriv --reuid {id} --regid {id} --clear-groups \"$@\"; }}\n\
             as sh -c 'umask 027; echo data > file; mkdir directory; echo data > other'\n\
             as chmod 751 file; as chmod 000 other\n\
             sync; echo 3 > /proc/sys/vm/drop_caches\n\
             same \"$(stat -c '%a %u %g' file)\" '751 {id} {id}' file\n\
             same \"$(stat -c '%a %u %g' other)\" '0 {id} {id}' other\n\
             same \"$(stat -c '%a %u %g' directory)\" '750 {id} {id}' directory\n\
             same \"$(cat file)\" data content\n\
             as chmod 640 file; echo 3 > /proc/sys/vm/drop_caches\n\
             same \"$(stat -c %a file)\" 640 changed\n"
        ),
    )
}

fn shared_extents_on_btrfs() -> Result<()> {
    shared_extents(FileSystem::Btrfs)
}

fn shared_extents_on_xfs() -> Result<()> {
    shared_extents(FileSystem::Xfs)
}

/// The third copy does not fit into the file system without shared extents.
fn shared_extents(file_system: FileSystem) -> Result<()> {
    let volume = Volume::new(file_system, VOLUME_LEN)?;
    let share = volume.path().join("share");
    fs::create_dir(&share)?;
    fs::set_permissions(&share, fs::Permissions::from_mode(0o777))?;
    let stage = MountStage::sharing(Subject::chosen(), Scratch::new("reflink")?, share)?;
    run_on(
        &stage,
        "",
        "head -c 150000000 /dev/urandom > one\n\
         for copy in two three four; do cp --reflink=always one $copy; cmp one $copy; done\n\
         printf changed | dd of=two conv=notrunc bs=1 seek=1000000 2> /dev/null\n\
         cmp one three; cmp -s one two && exit 1\n\
         test \"$(cmp -l one two | wc -l)\" -le 7\n\
         same \"$(dd if=two bs=1 skip=1000000 count=7 2> /dev/null)\" changed two\n",
    )
}

/// Programs for backups copy a tree to the mount, and back from it. rclone changes names of
/// attributes to lower case.
fn backups_keep_extended_attributes() -> Result<()> {
    let stage = MountStage::new(Subject::chosen(), "backups")?;
    stage.needs(&["rsync", "restic", "rclone"])?;
    run_on(
        &stage,
        "user_xattr",
        "export HOME=/tmp/home RESTIC_PASSWORD=secret\n\
         mkdir -p /tmp/home /tmp/tree/below; mount -t tmpfs none /tmp/home\n\
         mount -t tmpfs none /tmp/tree; mkdir /tmp/tree/below\n\
         for name in one below/two; do\n\
           echo $name > /tmp/tree/$name\n\
           setfattr -n user.origin -v $name /tmp/tree/$name\n\
         done\n\
         setfattr -n user.kind -v directory /tmp/tree/below\n\
         kept() {\n\
           same \"$(getfattr --only-values -n user.origin $1/one)\" one $1\n\
           same \"$(getfattr --only-values -n user.origin $1/below/two)\" below/two $1\n\
           same \"$(cat $1/below/two)\" below/two $1\n\
         }\n\
         rsync -rtX /tmp/tree/ rsync; kept rsync\n\
         same \"$(getfattr --only-values -n user.kind rsync/below)\" directory rsync\n\
         rsync -rtX rsync/ /tmp/home/rsync; kept /tmp/home/rsync\n\
         same \"$(rsync -rtXi rsync/ /tmp/home/rsync | grep -c '^[<>c]')\" 0 again\n\
         rclone copy -M /tmp/tree rclone; kept rclone\n\
         rclone copy -M rclone /tmp/home/rclone; kept /tmp/home/rclone\n\
         restic -q init -r repository; restic -q backup -r repository rsync\n\
         restic -q check -r repository\n\
         restic -q restore latest -r repository --target restored; kept restored/rsync\n",
    )
}

/// Runs commands in an empty directory of a mount with these options.
fn run(options: &str, commands: &str) -> Result<()> {
    run_on(
        &MountStage::new(Subject::chosen(), "metadata")?,
        options,
        commands,
    )
}

fn run_on(stage: &MountStage, options: &str, commands: &str) -> Result<()> {
    let commands = format!("{SAME}mkdir -p /mnt/a/work; cd /mnt/a/work\n{commands}\ncd /\n");
    let options = format!("vers=3.1.1,{options}");
    stage.run(&script(&[("a", &options)], &commands, FAULTS))?;
    Ok(())
}
