//! Clients query and set the disk quotas of users. The server runs in a guest, because its
//! kernel has quotas; the clients are smbcquotas, smb2-quota on a mount of cifs.ko, and smbclient.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};
use smbeam_tests::guest::Guest;
use smbeam_tests::lab::{Lab, Missing};
use smbeam_tests::namespace::Namespace;
use smbeam_tests::rdma;
use smbeam_tests::scratch::Scratch;
use smbeam_tests::subject::{self, ALICE, BOB, Subject};
use smbeam_tests::tests;

tests!(quotas_are_queried_and_set);

/// Size of the file system in bytes.
const DISK_BYTES: u64 = 64 << 20;
const SCRIPT: &str = include_str!("disk_quotas_are_shown/guest.sh");

fn quotas_are_queried_and_set() -> Result<()> {
    if Subject::chosen() == Subject::Samba {
        return Err(Missing("the script starts smbeam".into()).into());
    }
    let lab = Lab::find_with_guest()?;
    let scratch = Scratch::new("quota")?;
    make_disk(&scratch.path().join("disk"))?;
    fs::copy(subject::program()?, scratch.path().join("smbeam"))?;
    let namespace = Namespace::with_tap()?;
    let script = rdma::script(
        SCRIPT,
        &[
            ("DIRECTORY", &scratch.path().display().to_string()),
            ("NAME", ALICE.name),
            ("PASSWORD", ALICE.password),
            ("ID", &ALICE.id.to_string()),
            ("OTHER", BOB.name),
        ],
    );
    let report = Guest::new(&lab, &namespace).run(&script)?;
    ensure!(report.code == Some(0), "{}", report.console);
    Ok(())
}

/// Makes an ext4 file system that counts the disk space of users.
fn make_disk(path: &Path) -> Result<()> {
    File::create_new(path)?.set_len(DISK_BYTES)?;
    let made = Command::new("mkfs.ext4")
        .args(["-q", "-O", "quota"])
        .arg(path)
        .output()
        .map_err(|_| Missing("mkfs.ext4 of the package e2fsprogs".into()))?;
    let said = String::from_utf8_lossy(&made.stderr);
    ensure!(made.status.success(), "cannot make a file system: {said}");
    Ok(())
}
