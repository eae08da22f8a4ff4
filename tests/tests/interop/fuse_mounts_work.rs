//! `smbeam mount`: programs use a share as a directory. Two mounts of it see each other's changes,
//! and a mount ends without a trace.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use smbeam_tests::harness::Test;
use smbeam_tests::lab::{Missing, is_root};
use smbeam_tests::scale;
use smbeam_tests::scratch::Scratch;
use smbeam_tests::subject::{ALICE, Plan, Subject, program};
use smbeam_tests::volume::{FileSystem, Volume};
use smbeam_tests::wait;

use crate::rig::proxy::Proxy;
use crate::rig::{Case, Peer, Rig, SHARE, TIME_LIMIT, tests_over_tcp};

/// The checks that run on two mounts.
const CHECKS: &str = include_str!("../../src/python/fuse_mount.py");
/// Time without a connection.
const OUTAGE: Duration = Duration::from_secs(2);
/// Uid and gid of an ordinary user.
const ORDINARY_USER: u32 = 65534;

pub(crate) fn tests() -> Vec<Test> {
    let cases: &[(&str, Case)] = &[
        ("programs_use_a_mount", use_it),
        ("two_mounts_are_coherent", |peer| {
            check(peer, &["coherence"])
        }),
        ("written_data_are_held", |peer| check(peer, &["held"])),
        ("a_full_volume_is_reported", fill),
        ("names_stay_until_they_change", |peer| {
            check(peer, &["names"])
        }),
        ("closed_files_stay_open", |peer| check(peer, &["kept"])),
        ("two_mounts_write_in_turns", |peer| {
            check(peer, &["alternate"])
        }),
        ("locks_hold_between_mounts", |peer| check(peer, &["locks"])),
        ("an_outage_stalls_a_mount", stall),
        ("a_signal_unmounts", unmount_by_signal),
        ("a_killed_mount_leaves_no_stuck_process", kill),
        ("an_ordinary_user_mounts", mount_as_user),
    ];
    tests_over_tcp(cases)
}

/// A mount, and the process that serves it.
struct Mount {
    process: Child,
    target: PathBuf,
}

impl Mount {
    /// Mounts the share in the foreground.
    fn new(rig: &Rig, port: u16, name: &str, user: Option<u32>) -> Result<Self> {
        if !is_root() || !Path::new("/dev/fuse").exists() {
            let why = "a mount needs root and /dev/fuse".to_owned();
            return Err(Missing(why).into());
        }
        let target = rig.beside(name);
        fs::create_dir(&target)?;
        let password = rig.beside("password");
        fs::write(&password, ALICE.password)?;
        let mut command = Command::new(program()?);
        command
            .args(["mount", "--foreground", "--password-file"])
            .arg(password)
            .arg(format!("smb://{}@127.0.0.1:{port}/{SHARE}", ALICE.name))
            .arg(&target)
            .stdin(Stdio::null());
        if let Some(user) = user {
            std::os::unix::fs::chown(&target, Some(user), Some(user))?;
            command.uid(user).gid(user);
        }
        let process = command.spawn().context("cannot start smbeam mount")?;
        let mut mount = Self { process, target };
        wait::until("the mount", TIME_LIMIT, || {
            mount.is_mounted() || !matches!(mount.process.try_wait(), Ok(None))
        })?;
        ensure!(mount.is_mounted(), "smbeam mount has ended");
        Ok(mount)
    }

    fn is_mounted(&self) -> bool {
        let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
        let target = self.target.to_string_lossy();
        mounts
            .lines()
            .any(|line| line.split(' ').nth(1) == Some(&target))
    }

    fn signal(&self, name: &str) -> Result<()> {
        let id = self.process.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &id]).status()?;
        ensure!(sent.success(), "kill -s {name} failed");
        Ok(())
    }

    fn ends(&mut self) -> Result<()> {
        let status = wait::for_end(&mut self.process, TIME_LIMIT)?;
        status.map(drop).context("smbeam mount does not end")
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = Command::new("umount")
            .arg("-l")
            .arg(&self.target)
            .stderr(Stdio::null())
            .status();
    }
}

fn python(arguments: &[&Path], checks: &[&str]) -> Command {
    let mut command = Command::new("python3");
    command.args(["-c", CHECKS]).args(arguments).args(checks);
    command.env("TURNS", scale::choose("100", "1000"));
    command
}

fn succeeds(command: &mut Command) -> Result<()> {
    let output = command.output().context("cannot run python3")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{errors}");
    Ok(())
}

fn rig(peer: Peer) -> Result<Rig> {
    Rig::with(peer, durable)
}

/// smbd keeps durable opens only if the kernel knows nothing of its locks.
fn durable(plan: &mut Plan) {
    let lines = [
        "kernel oplocks = no",
        "kernel share modes = no",
        "posix locking = no",
    ];
    plan.samba_globals.extend(lines.map(str::to_owned));
}

fn check(peer: Peer, checks: &[&str]) -> Result<()> {
    check_on(&rig(peer)?, checks)
}

fn fill(peer: Peer) -> Result<()> {
    let volume = Volume::new(FileSystem::Tmpfs, 16 << 20)?;
    fs::set_permissions(volume.path(), fs::Permissions::from_mode(0o777))?;
    let scratch = Scratch::new("client")?;
    let rig = Rig::sharing(peer, scratch, volume.path(), durable)?;
    check_on(&rig, &["full"])
}

fn check_on(rig: &Rig, checks: &[&str]) -> Result<()> {
    let port = rig.endpoint().port;
    let (one, two) = (
        Mount::new(rig, port, "one", None)?,
        Mount::new(rig, port, "two", None)?,
    );
    succeeds(&mut python(
        &[&one.target, &two.target, &rig.path("")],
        checks,
    ))
}

fn use_it(peer: Peer) -> Result<()> {
    let mut checks = vec!["basic", "open_files", "direct", "rename_flags"];
    if peer.subject == Subject::Smbeam {
        // smbd has hard links and holes of the disk below it, and other kinds of links.
        checks.extend(["links", "special", "space"]);
    }
    check(peer, &checks)
}

fn stall(peer: Peer) -> Result<()> {
    let rig = rig(peer)?;
    let proxy = Proxy::to(rig.endpoint())?;
    let mount = Mount::new(&rig, proxy.endpoint().port, "one", None)?;
    let mut writes = python(
        &[&mount.target, &mount.target, &rig.path("")],
        &["write_slowly"],
    );
    let mut writes = writes.stderr(Stdio::piped()).spawn()?;
    wait::until("the first records", TIME_LIMIT, || {
        rig.path("records").exists()
    })?;
    proxy.interrupt(OUTAGE, None);
    wait::for_end(&mut writes, TIME_LIMIT)?.context("the writes do not end")?;
    let output = writes.wait_with_output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{errors}");
    Ok(())
}

fn unmount_by_signal(peer: Peer) -> Result<()> {
    let rig = rig(peer)?;
    for name in ["TERM", "INT"] {
        let mut mount = Mount::new(&rig, rig.endpoint().port, name, None)?;
        fs::write(mount.target.join("file"), name)?;
        mount.signal(name)?;
        mount.ends()?;
        ensure!(!mount.is_mounted(), "SIG{name} leaves the mount");
        rig.assert_holds("file", name.as_bytes())?;
    }
    // A program that uses the mount does not keep the process from its end.
    let mut mount = Mount::new(&rig, rig.endpoint().port, "busy", None)?;
    let _file = fs::File::open(mount.target.join("file"))?;
    mount.signal("TERM")?;
    mount.ends()?;
    ensure!(!mount.is_mounted(), "a mount in use stays");
    Ok(())
}

fn kill(peer: Peer) -> Result<()> {
    let rig = rig(peer)?;
    let mut mount = Mount::new(&rig, rig.endpoint().port, "one", None)?;
    fs::write(mount.target.join("file"), "data")?;
    let program = "import os, sys\nwhile True: os.stat(sys.argv[1]).st_size";
    let mut reader = Command::new("python3")
        .args(["-c", program])
        .arg(mount.target.join("file"))
        .stderr(Stdio::null())
        .spawn()?;
    mount.process.kill()?;
    mount.ends()?;
    let end = wait::for_end(&mut reader, TIME_LIMIT)?;
    ensure!(end.is_some_and(|end| !end.success()), "the reader is stuck");
    Ok(())
}

fn mount_as_user(peer: Peer) -> Result<()> {
    let has_helper = Command::new("fusermount3")
        .arg("-V")
        .stdout(Stdio::null())
        .status();
    if has_helper.is_err() {
        let why = "an ordinary user needs fusermount3 (package fuse3)".to_owned();
        return Err(Missing(why).into());
    }
    let mode = fs::metadata("/dev/fuse").map_or(0, |device| device.permissions().mode());
    if mode & 0o006 != 0o006 {
        let why = "ordinary users may not open /dev/fuse on this machine".to_owned();
        return Err(Missing(why).into());
    }
    let rig = rig(peer)?;
    let mut mount = Mount::new(&rig, rig.endpoint().port, "one", Some(ORDINARY_USER))?;
    let (one, shared) = (mount.target.clone(), rig.path(""));
    let mut checks = python(&[&one, &one, &shared], &["direct", "rename_flags"]);
    succeeds(checks.uid(ORDINARY_USER).gid(ORDINARY_USER))?;
    mount.signal("TERM")?;
    mount.ends()?;
    ensure!(!mount.is_mounted(), "the mount stays");
    Ok(())
}
