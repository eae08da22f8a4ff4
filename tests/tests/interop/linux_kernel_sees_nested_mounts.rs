//! A stock Linux kernel sees the files of file systems that are mounted in a share as different
//! files, and names that SMB cannot carry.
//!
//! The file systems are of one kind, so that their inode numbers are the same. cifs.ko believes
//! that two files with one number are one file.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use smbeam_tests::guest::Guest;
use smbeam_tests::lab::{Lab, Missing};
use smbeam_tests::namespace::{HOST_ADDRESS, Namespace};
use smbeam_tests::scratch::Scratch;
use smbeam_tests::subject::{ALICE, Plan, Server, Subject};
use smbeam_tests::tests;

tests!(a_kernel_sees_nested_mounts_whole);

fn a_kernel_sees_nested_mounts_whole() -> Result<()> {
    if Subject::chosen() == Subject::Samba {
        return Err(Missing("smbd reports inode numbers of several disks".into()).into());
    }
    let lab = Lab::find_with_guest()?;
    let scratch = Scratch::new("pool")?;
    let share = scratch.open_directory("share")?;
    let namespace = Namespace::with_tap()?;
    let server = Server::start_under(&lab, &namespace, Plan::sharing(&share))?;
    mount_pool(&server, &share)?;
    let report = Guest::new(&lab, &namespace).run(&script())?;
    let log = server.log();
    ensure!(report.code == Some(0), "{}\nserver:\n{log}", report.console);
    Ok(())
}

/// Mounts three file systems below the share, in the mount namespace of the server, so that they
/// end with it. Each has a file `x` with its name.
fn mount_pool(server: &Server, share: &Path) -> Result<()> {
    let script = r#"set -e
cd "$0"
mkdir -p pool/disk1 pool/disk2 pool/names
for disk in disk1 disk2 disk1/in; do
    mkdir -p "pool/$disk"
    mount -t tmpfs -o mode=777 none "pool/$disk"
    printf %s "$disk" > "pool/$disk/x"
    chmod 666 "pool/$disk/x"
done
printf picture > "pool/names/cam_11:05.jpg"
printf dot > "pool/names/end."
"#;
    let made = Command::new("nsenter")
        .args(["--mount", "--root", "--target", &server.pid().to_string()])
        .args(["--", "/bin/sh", "-c", script])
        .arg(share)
        .output()
        .context("cannot run nsenter")?;
    let said = String::from_utf8_lossy(&made.stderr);
    ensure!(made.status.success(), "cannot mount: {said}");
    Ok(())
}

/// The script of the guest: the first command that fails ends it.
fn script() -> String {
    let (name, password) = (ALICE.name, ALICE.password);
    format!(
        r#"set -ex
trap 'code=$?; test $code = 0 || {{ echo "failed with $code"; dmesg | tail -30; }}' EXIT
modprobe cifs
mkdir -p /mnt/share
mount -t cifs //{HOST_ADDRESS}/data /mnt/share -o username={name},password='{password}',vers=3.1.1
cd /mnt/share/pool
test "$(find . -name x | wc -l)" = 3
for disk in disk1 disk2 disk1/in; do
    test "$(cat $disk/x)" = $disk
done
numbers=$(stat -c %i . disk1 disk2 disk1/in disk1/x disk2/x disk1/in/x)
test "$(echo "$numbers" | sort -u | wc -l)" = 7
# cp refuses to copy a file onto itself, tar stores equal files as links, find and du end at a
# directory that seems to contain itself.
cp disk1/x disk2/x
test "$(cat disk2/x)" = disk1
tar cf /dev/shm/pool.tar .
tar tvf /dev/shm/pool.tar > /dev/shm/list
test "$(grep -c 'link to' /dev/shm/list)" = 0
test "$(grep -c '/x$' /dev/shm/list)" = 3
du -s .
test "$(cat names/cam_11:05.jpg)" = picture
test "$(cat names/end.)" = dot
test "$(ls names | wc -l)" = 2
cd /
umount /mnt/share
set +x
dmesg | grep -E 'CIFS: VFS|WARNING|BUG|Oops|Call Trace|hung' && exit 99
exit 0
"#
    )
}
