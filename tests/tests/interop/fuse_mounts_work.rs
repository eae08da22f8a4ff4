//! `smbeam mount`: programs use a share as a directory. Two mounts of it see each other's changes,
//! and a mount ends without a trace.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use smbeam_tests::fuse::FuseMount;
use smbeam_tests::harness::Test;
use smbeam_tests::lab::Missing;
use smbeam_tests::scale;
use smbeam_tests::scratch::Scratch;
use smbeam_tests::subject::{ALICE, Plan, ROOT, Subject, User};
use smbeam_tests::volume::{FileSystem, Volume};
use smbeam_tests::wait;

use crate::rig::proxy::Proxy;
use crate::rig::{Case, Peer, Rig, TIME_LIMIT, tests_over_tcp};

/// The checks that run on two mounts.
const CHECKS: &str = include_str!("../../src/python/fuse_mount.py");
/// The checks of the POSIX extensions, which need the others behind them.
const POSIX_CHECKS: &str = include_str!("../../src/python/fuse_posix.py");
/// The options with which a mount is a file system for all users of this machine.
const FOR_ALL: &str = "posix,allow_other,default_permissions,dev,suid";
/// The checks of an ordinary user.
const AS_USER: &[&str] = &[
    "basic",
    "open_files",
    "direct",
    "rename_flags",
    "held",
    "kept",
];
/// The work of a long time.
const SOAK: &str = include_str!("../../src/python/fuse_soak.py");
/// Bytes by which the memory of a process may grow after a quarter of that time.
const GROWTH_MAX: u64 = 16 << 20;
/// Time without a connection.
const OUTAGE: Duration = Duration::from_secs(2);
/// Input/output error. errno(3)
const EIO: i32 = 5;

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
        ("posix_mounts_are_file_systems_of_unix", use_with_posix),
        ("locks_hold_between_mounts", |peer| check(peer, &["locks"])),
        ("an_outage_stalls_a_mount", stall),
        ("a_restart_of_the_server_stalls_a_mount", restart),
        ("a_long_outage_fails_requests", give_up),
        ("a_forced_unmount_leaves_no_stuck_process", unmount_by_force),
        ("a_signal_unmounts", unmount_by_signal),
        ("a_killed_mount_leaves_no_stuck_process", kill),
        ("an_ordinary_user_mounts", mount_as_user),
    ];
    let mut tests = tests_over_tcp(cases);
    let soak: &[(&str, Case)] = &[("memory_stays_flat", use_for_long)];
    tests.extend(tests_over_tcp(soak).into_iter().map(Test::long));
    tests
}

/// Mounts the share in the foreground. `uid` is the user that runs the process.
fn mount(rig: &Rig, port: u16, name: &str, uid: Option<u32>) -> Result<FuseMount> {
    mount_as(rig, (port, ALICE), name, ("rw", uid))
}

/// Mounts the share in the foreground, with these options.
pub(crate) fn mount_with(rig: &Rig, (port, options): (u16, &str), name: &str) -> Result<FuseMount> {
    mount_as(rig, (port, ALICE), name, (options, None))
}

fn mount_as(
    rig: &Rig,
    (port, account): (u16, User),
    name: &str,
    (options, uid): (&str, Option<u32>),
) -> Result<FuseMount> {
    let address = format!("127.0.0.1:{port}");
    FuseMount::start((&address, account), &rig.beside(name), options, uid)
}

fn python(arguments: &[&Path], checks: &[&str]) -> Command {
    let mut command = Command::new("python3");
    add_checks(&mut command, arguments, checks);
    command
}

fn add_checks(command: &mut Command, arguments: &[&Path], checks: &[&str]) {
    command.args(["-c", CHECKS]).args(arguments).args(checks);
    command.env("TURNS", scale::choose("100", "1000"));
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
        mount(rig, port, "one", None)?,
        mount(rig, port, "two", None)?,
    );
    succeeds(&mut python(
        &[one.target(), two.target(), &rig.path("")],
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

/// Two mounts with the POSIX extensions, in a session that may give files to other users.
fn use_with_posix(peer: Peer) -> Result<()> {
    if peer.subject == Subject::Samba {
        // Samba 4.25 keeps no setuid, setgid and sticky bits, and refuses to replace open files.
        let why = "smbd has other rules for owners and modes".to_owned();
        return Err(Missing(why).into());
    }
    let rig = Rig::with(peer, |plan| plan.users.push(ROOT))?;
    let port = rig.endpoint().port;
    let mount = |name| mount_as(&rig, (port, ROOT), name, (FOR_ALL, None));
    let (one, two) = (mount("one")?, mount("two")?);
    let program = [POSIX_CHECKS, CHECKS].concat();
    let mut command = Command::new("python3");
    command
        .args(["-c", &program])
        .args([one.target(), two.target(), &rig.path("")])
        .args(["posix_owners", "posix_files", "posix_renames"]);
    succeeds(&mut command)
}

fn stall(peer: Peer) -> Result<()> {
    let rig = rig(peer)?;
    let proxy = Proxy::to(rig.endpoint())?;
    let mount = mount(&rig, proxy.endpoint().port, "one", None)?;
    write_slowly(&rig, &mount, || {
        proxy.interrupt(OUTAGE, None);
        Ok(())
    })
}

/// smbeam keeps durable opens on its disk. smbd keeps them in a database that its processes share.
fn restart(peer: Peer) -> Result<()> {
    let mut rig = rig(peer)?;
    let port = rig.endpoint().port;
    let mount = mount(&rig, port, "one", None)?;
    fs::write(mount.target().join("file"), "before")?;
    let file = fs::File::open(mount.target().join("file"))?;
    rig.server.kill()?;
    rig.server.restart()?;
    // An open for reading is made again, and a path needs no open.
    ensure!(read_at(&file)? == b"before", "an open file has other data");
    fs::write(mount.target().join("other"), "after")?;
    rig.assert_holds("other", b"after")
}

fn read_at(file: &fs::File) -> Result<Vec<u8>> {
    use std::os::unix::fs::FileExt as _;
    let mut buffer = [0; 16];
    let len = file.read_at(&mut buffer, 0)?;
    Ok(buffer[..len].to_vec())
}

/// Writes to a mount, and lets `disturb` act meanwhile. No record is lost.
fn write_slowly(rig: &Rig, mount: &FuseMount, disturb: impl FnOnce() -> Result<()>) -> Result<()> {
    let mut writes = python(
        &[mount.target(), mount.target(), &rig.path("")],
        &["write_slowly"],
    );
    let mut writes = writes.stderr(Stdio::piped()).spawn()?;
    wait::until("the first records", TIME_LIMIT, || {
        rig.path("records").exists()
    })?;
    disturb()?;
    wait::for_end(&mut writes, TIME_LIMIT)?.context("the writes do not end")?;
    let output = writes.wait_with_output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{errors}");
    Ok(())
}

fn unmount_by_signal(peer: Peer) -> Result<()> {
    let rig = rig(peer)?;
    for name in ["TERM", "INT"] {
        let mut mount = mount(&rig, rig.endpoint().port, name, None)?;
        fs::write(mount.target().join("file"), name)?;
        mount.signal(name)?;
        mount.ends()?;
        ensure!(!mount.is_mounted(), "SIG{name} leaves the mount");
        rig.assert_holds("file", name.as_bytes())?;
    }
    // A program that uses the mount does not keep the process from its end.
    let mut mount = mount(&rig, rig.endpoint().port, "busy", None)?;
    let _file = fs::File::open(mount.target().join("file"))?;
    mount.signal("TERM")?;
    mount.ends()?;
    ensure!(!mount.is_mounted(), "a mount in use stays");
    Ok(())
}

fn kill(peer: Peer) -> Result<()> {
    let rig = rig(peer)?;
    let mut mount = mount(&rig, rig.endpoint().port, "one", None)?;
    fs::write(mount.target().join("file"), "data")?;
    let program = "import os, sys\nwhile True: os.stat(sys.argv[1]).st_size";
    let mut reader = Command::new("python3")
        .args(["-c", program])
        .arg(mount.target().join("file"))
        .stderr(Stdio::null())
        .spawn()?;
    mount.kill()?;
    mount.ends()?;
    let end = wait::for_end(&mut reader, TIME_LIMIT)?;
    ensure!(end.is_some_and(|end| !end.success()), "the reader is stuck");
    Ok(())
}

/// After the time of `reconnect_s` requests fail, and the mount can end.
fn give_up(peer: Peer) -> Result<()> {
    let rig = rig(peer)?;
    let proxy = Proxy::to(rig.endpoint())?;
    let port = proxy.endpoint().port;
    let mut mount = mount_with(&rig, (port, "reconnect_s=0.5,cache=none"), "one")?;
    fs::write(mount.target().join("file"), "data")?;
    let file = fs::File::open(mount.target().join("file"))?;
    proxy.shut();
    let error = read_at(&file).err().context("a read succeeds")?;
    let error = error.downcast::<std::io::Error>()?;
    ensure!(error.raw_os_error() == Some(EIO), "{error}");
    ensure!(
        fs::metadata(mount.target().join("file")).is_err(),
        "stat(2) succeeds"
    );
    drop(file);
    mount.signal("TERM")?;
    mount.ends()
}

/// Programs that wait for a lost server end when the file system is unmounted by force.
fn unmount_by_force(peer: Peer) -> Result<()> {
    let rig = rig(peer)?;
    for force in ["-f", "-l"] {
        let proxy = Proxy::to(rig.endpoint())?;
        let options = (proxy.endpoint().port, "cache=none");
        let mut mount = mount_with(&rig, options, &format!("by{force}"))?;
        fs::write(mount.target().join("file"), "data")?;
        let program =
            "import sys\nwith open(sys.argv[1]) as file:\n while True: file.seek(0); file.read()";
        let mut reader = Command::new("python3")
            .args(["-c", program])
            .arg(mount.target().join("file"))
            .stderr(Stdio::null())
            .spawn()?;
        proxy.shut();
        let unmounted = Command::new("umount")
            .arg(force)
            .arg(mount.target())
            .status()?;
        ensure!(unmounted.success() || force == "-f", "umount {force} fails");
        // A detached file system ends with its process.
        mount.kill()?;
        mount.ends()?;
        let end = wait::for_end(&mut reader, TIME_LIMIT)?;
        ensure!(
            end.is_some_and(|end| !end.success()),
            "the reader is stuck after {force}"
        );
    }
    Ok(())
}

/// Two mounts are used for half an hour. Neither needs more memory at its end.
fn use_for_long(peer: Peer) -> Result<()> {
    if peer.subject == Subject::Samba {
        let why = "smbd sets the times of files some seconds after a write".to_owned();
        return Err(Missing(why).into());
    }
    let rig = rig(peer)?;
    let port = rig.endpoint().port;
    let (one, two) = (
        mount(&rig, port, "one", None)?,
        mount(&rig, port, "two", None)?,
    );
    let output = Command::new("python3")
        .args(["-c", SOAK])
        .args([one.target(), two.target(), &rig.path("")])
        .arg(scale::choose("60", "1800"))
        .args([one.id(), two.id()].map(|id| id.to_string()))
        .stderr(Stdio::inherit())
        .output()?;
    ensure!(output.status.success(), "the work failed");
    let text = String::from_utf8(output.stdout)?;
    print!("{text}");
    let numbers = |line: &str| line.split(' ').map(str::parse::<u64>).collect();
    let rows: Vec<Vec<u64>> = text.lines().map(numbers).collect::<Result<_, _>>()?;
    let [warm, end] = &rows[..] else {
        bail!("two lines are expected: {text}");
    };
    for (warm, end) in warm.iter().zip(end) {
        ensure!(*end <= warm + GROWTH_MAX, "{warm} bytes became {end}");
    }
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
    let rig = rig(peer)?;
    // The checks compare the mount with the directory of the share, which is that of the user.
    let mut mount = mount(&rig, rig.endpoint().port, "one", Some(ALICE.id))?;
    let (one, shared) = (mount.target().to_path_buf(), rig.path(""));
    let mut checks = mount.command("python3");
    add_checks(&mut checks, &[&one, &one, &shared], AS_USER);
    succeeds(&mut checks)?;
    // A process in the name space sees the mount after the end of the process that serves it.
    let mut witness = mount.command("cat").stdin(Stdio::piped()).spawn()?;
    wait::until("the witness", TIME_LIMIT, || {
        mount.is_mounted_for(witness.id())
    })?;
    mount.signal("TERM")?;
    mount.ends()?;
    let is_left = mount.is_mounted_for(witness.id());
    drop(witness.stdin.take());
    witness.wait()?;
    ensure!(!is_left, "the mount stays");
    Ok(())
}
