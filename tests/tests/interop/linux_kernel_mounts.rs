//! A stock Linux kernel mounts a share with every dialect, plain and encrypted, and works on it.

use std::fs;

use anyhow::{Result, ensure};
use smbeam_tests::files::{assert_same_tree, give_tree_to, make_tree};
use smbeam_tests::guest::Guest;
use smbeam_tests::lab::Lab;
use smbeam_tests::namespace::{HOST_ADDRESS, Namespace};
use smbeam_tests::scratch::Scratch;
use smbeam_tests::subject::{ALICE, Plan, Server};
use smbeam_tests::tests;

tests!(
    with_smb_2_1,
    with_smb_3_0,
    with_smb_3_0_encrypted,
    with_smb_3_0_2,
    with_smb_3_0_2_encrypted,
    with_smb_3_1_1,
    with_smb_3_1_1_signed,
    with_smb_3_1_1_encrypted,
    with_smb_3_0_on_four_channels,
    with_smb_3_1_1_on_four_channels,
    with_smb_3_1_1_encrypted_on_four_channels,
    two_mounts_lock_a_file,
);

const OPERATIONS: u32 = 10_000;

fn with_smb_2_1() -> Result<()> {
    works_on_a_mount("vers=2.1")
}

fn with_smb_3_0() -> Result<()> {
    works_on_a_mount("vers=3.0")
}

fn with_smb_3_0_encrypted() -> Result<()> {
    works_on_a_mount("vers=3.0,seal")
}

fn with_smb_3_0_2() -> Result<()> {
    works_on_a_mount("vers=3.0.2")
}

fn with_smb_3_0_2_encrypted() -> Result<()> {
    works_on_a_mount("vers=3.0.2,seal")
}

fn with_smb_3_1_1() -> Result<()> {
    works_on_a_mount("vers=3.1.1")
}

fn with_smb_3_1_1_signed() -> Result<()> {
    works_on_a_mount("vers=3.1.1,sign")
}

fn with_smb_3_1_1_encrypted() -> Result<()> {
    works_on_a_mount("vers=3.1.1,seal")
}

fn with_smb_3_0_on_four_channels() -> Result<()> {
    works_on_a_mount("vers=3.0,multichannel,max_channels=4")
}

fn with_smb_3_1_1_on_four_channels() -> Result<()> {
    works_on_a_mount("vers=3.1.1,multichannel,max_channels=4")
}

fn with_smb_3_1_1_encrypted_on_four_channels() -> Result<()> {
    works_on_a_mount("vers=3.1.1,seal,multichannel,max_channels=4")
}

/// Two mounts, each with a separate connection. Without oplocks: after the break of one, Linux
/// 7.2 keeps the locks of its own programs to itself; it does so with smbd as well if that grants
/// no leases.
fn two_mounts_lock_a_file() -> Result<()> {
    let lab = Lab::find_with_guest()?;
    let scratch = Scratch::new("locks")?;
    let mut plan = Plan::sharing(&scratch.open_directory("share")?);
    plan.shares[0].oplocks = false;
    let namespace = Namespace::with_tap()?;
    let server = Server::start_under(&lab, &namespace, plan)?;
    let report = Guest::new(&lab, &namespace).run(&locks_script())?;
    let log = server.log();
    ensure!(report.code == Some(0), "{}\nserver:\n{log}", report.console);
    Ok(())
}

/// The script of the guest: the second mount fails or waits at the locked file; a close unlocks it.
fn locks_script() -> String {
    let (name, password) = (ALICE.name, ALICE.password);
    format!(
        r#"set -ex
modprobe cifs
for mount in a b; do
    mkdir -p /mnt/$mount
    mount -t cifs //{HOST_ADDRESS}/data /mnt/$mount \
        -o username={name},password='{password}',vers=3.1.1,nosharesock
done
exec 8<>/mnt/a/file
exec 9<>/mnt/b/file
flock -n 8
if flock -n 9; then exit 98; fi
(sleep 1; flock -u 8) &
flock 9
if flock -n 8; then exit 97; fi
exec 9>&-
flock -n 8
exec 8>&-
rm /mnt/a/file
umount /mnt/a /mnt/b
exit 0
"#
    )
}

fn works_on_a_mount(options: &str) -> Result<()> {
    let lab = Lab::find_with_guest()?;
    let scratch = Scratch::new("mount")?;
    let share = scratch.open_directory("share")?;
    let tree = scratch.path().join("tree");
    make_tree(&tree, 6)?;
    give_tree_to(&tree, ALICE.id)?;
    let checker = scratch.path().join("random_io");
    fs::copy(env!("CARGO_BIN_EXE_random_io"), &checker)?;
    fs::create_dir(scratch.path().join("from-guest"))?;
    let namespace = Namespace::with_tap()?;
    let plan = Plan {
        channels: options.contains("multichannel"),
        ..Plan::sharing(&share)
    };
    let server = Server::start_under(&lab, &namespace, plan)?;
    let script = script(&scratch, options);
    let report = Guest::new(&lab, &namespace).run(&script)?;
    let log = server.log();
    ensure!(
        report.code == Some(0),
        "with {options}:\n{}\nserver:\n{log}",
        report.console
    );
    assert_same_tree(&tree, &scratch.path().join("from-guest/tree"))?;
    ensure!(
        fs::read_dir(&share)?.next().is_none(),
        "rm -r left something on the share"
    );
    Ok(())
}

/// The script of the guest. The first command that fails ends it; the kernel's complaints fail it
/// too.
fn script(scratch: &Scratch, options: &str) -> String {
    let (name, password) = (ALICE.name, ALICE.password);
    let directory = scratch.path().display();
    // The kernel makes none with SMB 2.1.
    let holes = if options.contains("vers=2.1") {
        ""
    } else {
        "holes"
    };
    let further_channels = if options.contains("max_channels=4") {
        3
    } else {
        0
    };
    format!(
        r#"set -e
trap 'code=$?; test $code = 0 || {{ echo "failed with $code"; dmesg | tail -30; }}' EXIT
modprobe cifs
mkdir -p /mnt/share
mount -t cifs //{HOST_ADDRESS}/data /mnt/share -o username={name},password='{password}',{options}
set -x
cp -a {directory}/tree /mnt/share/
# The kernel opens further channels after mount(2) has returned.
channels() {{ grep -c 'Channel: ' /proc/fs/cifs/DebugData; }}
for attempt in $(seq 300); do test "$(channels)" != {further_channels} || break; sleep 0.1; done
test "$(channels)" = {further_channels}
diff -r {directory}/tree /mnt/share/tree
test "$(find /mnt/share | wc -l)" = "$(find {directory}/tree | wc -l | awk '{{ print $1 + 1 }}')"
cp -a /mnt/share/tree {directory}/from-guest/
{directory}/random_io /mnt/share/random 1 {OPERATIONS} {holes}
mv /mnt/share/random /mnt/share/tree/moved
df /mnt/share | tail -1
rm -r /mnt/share/tree
test -z "$(ls -A /mnt/share)"
umount /mnt/share
set +x
dmesg | grep -E 'CIFS: VFS|WARNING|BUG|Oops|Call Trace|hung' && exit 99
exit 0
"#
    )
}
