//! Each failure is a distinct error, with the server's status and the path.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::rig::{Peer, Rig, SHARE, TIME_LIMIT, for_each_transport, pattern};
use anyhow::{Context as _, Result, ensure};
use smbeam_client::{Error, OpenOptions, Options, Session, Status, Wait, WriteOptions};
use smbeam_tests::lab::{Lab, Missing, is_root};
use smbeam_tests::scratch::Scratch;
use smbeam_tests::subject::{ALICE, BOB, Share, Subject, User};
use smbeam_tests::wait;

for_each_transport!(
    a_wrong_login_is_refused,
    a_password_that_expired_is_refused,
    a_disabled_account_is_refused,
    a_missing_share_is_refused,
    a_share_of_others_is_refused,
    files_of_others_are_refused,
    nothing_is_written_to_a_share_to_read,
    missing_paths_and_other_kinds_of_files_are_refused,
    a_full_disk_is_reported,
);

/// The error of a call that must fail. It names the path and one of the statuses.
fn failure<T>(result: Result<T, Error>, path: &str, statuses: &[Status]) -> Result<Error> {
    let error = result.err().with_context(|| format!("{path}: it worked"))?;
    let Error::Status { status, .. } = &error else {
        anyhow::bail!("{path}: {error:?}");
    };
    ensure!(statuses.contains(status), "{path}: {error}");
    assert_names(&error, path, *status)?;
    Ok(error)
}

fn assert_names(error: &Error, what: &str, status: Status) -> Result<()> {
    let text = error.to_string();
    let name = format!("NT_STATUS_{}", status.name().context("a name")?);
    ensure!(text.contains(what) && text.contains(&name), "{text}");
    Ok(())
}

fn refused_login(session: Result<Session, Error>, wanted: &[Status]) -> Result<()> {
    let error = session.err().context("it worked")?;
    let Error::Login { status, .. } = &error else {
        anyhow::bail!("{error:?}");
    };
    ensure!(wanted.contains(status), "{error}");
    assert_names(&error, "127.0.0.1 refuses the login", *status)
}

fn log_in(rig: &Rig, user: User) -> Result<Session, Error> {
    rig.connect_as(Options::default(), user)
}

fn a_wrong_login_is_refused(peer: Peer) -> Result<()> {
    let rig = Rig::new(peer)?;
    for (name, password) in [
        ("alice", "wrong"),
        ("alice", ""),
        ("alice", "wonderland-7"),
        ("unknown-user", "x"),
    ] {
        let user = User {
            name,
            password,
            id: 0,
        };
        refused_login(log_in(&rig, user), &[Status::LOGON_FAILURE])
            .with_context(|| format!("{name} with `{password}`"))?;
    }
    // Names of users know no case.
    let shouting = User {
        name: "ALICE",
        ..ALICE
    };
    log_in(&rig, shouting)?.share(SHARE).wait()?;
    Ok(())
}

/// Runs one of smbd's tools on its users.
fn tool(rig: &Rig, program: &str, arguments: &[&str]) -> Result<()> {
    let lab = Lab::find()?;
    let mut command = lab.command(program);
    match program {
        "smbpasswd" => command.arg("-c"),
        _ => command.arg("-s"),
    };
    let output = command
        .arg(rig.server.directory().join("smb.conf"))
        .args(arguments)
        .output()?;
    ensure!(output.status.success(), "{program}: {output:?}");
    Ok(())
}

fn a_password_that_expired_is_refused(peer: Peer) -> Result<()> {
    if peer.subject == Subject::Smbeam {
        return Err(Missing("passwords of smbeam do not expire".into()).into());
    }
    let rig = Rig::new(peer)?;
    log_in(&rig, ALICE)?;
    tool(
        &rig,
        "net",
        &["sam", "set", "pwdmustchangenow", "alice", "yes"],
    )?;
    let expired = [Status::PASSWORD_EXPIRED, Status::PASSWORD_MUST_CHANGE];
    refused_login(log_in(&rig, ALICE), &expired)?;
    log_in(&rig, BOB)?;
    Ok(())
}

fn a_disabled_account_is_refused(peer: Peer) -> Result<()> {
    if peer.subject == Subject::Smbeam {
        return Err(Missing("accounts of smbeam are there or not".into()).into());
    }
    let rig = Rig::new(peer)?;
    tool(&rig, "smbpasswd", &["-d", "alice"])?;
    refused_login(log_in(&rig, ALICE), &[Status::ACCOUNT_DISABLED])
}

fn a_missing_share_is_refused(peer: Peer) -> Result<()> {
    let rig = Rig::new(peer)?;
    let session = rig.session()?;
    let missing = session.share("elsewhere").wait();
    let error = failure(missing, "elsewhere", &[Status::BAD_NETWORK_NAME])?;
    ensure!(error.is_not_found(), "{error:?}");
    for name in ["", "a/b", "a\\b"] {
        let refused = session.share(name).wait();
        ensure!(
            matches!(refused, Err(Error::InvalidName(..))),
            "`{name}`: {refused:?}"
        );
    }
    // The session is none the worse for it.
    session.share(SHARE).wait()?.metadata("").wait()?;
    Ok(())
}

fn a_share_of_others_is_refused(peer: Peer) -> Result<()> {
    let rig = Rig::with(peer, |plan| {
        let path = plan.shares[0].path.clone();
        plan.shares.push(Share {
            users: vec![BOB.name.into()],
            ..Share::new("bobs", &path)
        });
    })?;
    let session = rig.session()?;
    failure(
        session.share("bobs").wait(),
        "bobs",
        &[Status::ACCESS_DENIED],
    )?;
    session.share(SHARE).wait()?;
    log_in(&rig, BOB)?.share("bobs").wait()?;
    Ok(())
}

fn files_of_others_are_refused(peer: Peer) -> Result<()> {
    // Only there the server has users that it can keep apart.
    Lab::find()?;
    let rig = Rig::new(peer)?;
    fs::create_dir(rig.path("private"))?;
    fs::write(rig.path("private/inner"), "bob's")?;
    fs::write(rig.path("secret"), "bob's")?;
    for (name, mode) in [
        ("private/inner", 0o600),
        ("private", 0o700),
        ("secret", 0o600),
    ] {
        fs::set_permissions(rig.path(name), Permissions::from_mode(mode))?;
        chown(rig.path(name), Some(BOB.id), Some(BOB.id))?;
    }
    let share = rig.share()?;
    let denied = [Status::ACCESS_DENIED];
    let new = WriteOptions::default();
    let error = failure(share.read("secret").wait(), "secret", &denied)?;
    ensure!(io::Error::from(error).kind() == io::ErrorKind::PermissionDenied);
    failure(
        share.write("secret", b"x".to_vec(), &new).wait(),
        "secret",
        &denied,
    )?;
    failure(share.read("private/inner").wait(), "private/inner", &denied)?;
    failure(share.read_dir("private", "*").wait(), "private", &denied)?;
    let planted = share.write("private/planted", b"x".to_vec(), &new).wait();
    failure(planted, "private/planted", &denied)?;
    let bobs = log_in(&rig, BOB)?.share(SHARE).wait()?;
    ensure!(bobs.read("secret").wait()? == b"bob's");
    ensure!(bobs.read("private/inner").wait()? == b"bob's");
    Ok(())
}

fn nothing_is_written_to_a_share_to_read(peer: Peer) -> Result<()> {
    let rig = Rig::with(peer, |plan| plan.shares[0].read_only = true)?;
    fs::write(rig.path("file"), "text")?;
    let share = rig.share()?;
    ensure!(share.read("file").wait()? == b"text");
    let denied = [Status::ACCESS_DENIED, Status::MEDIA_WRITE_PROTECTED];
    let new = WriteOptions::default();
    failure(
        share.write("file", b"x".to_vec(), &new).wait(),
        "file",
        &denied,
    )?;
    failure(
        share.write("new", b"x".to_vec(), &new).wait(),
        "new",
        &denied,
    )?;
    failure(share.create_dir("subdir").wait(), "subdir", &denied)?;
    failure(share.remove_file("file").wait(), "file", &denied)?;
    failure(share.rename("file", "other", false).wait(), "file", &denied)?;
    rig.assert_holds("file", b"text")
}

fn missing_paths_and_other_kinds_of_files_are_refused(peer: Peer) -> Result<()> {
    let rig = Rig::new(peer)?;
    let share = rig.share()?;
    let new = WriteOptions::default();
    share.create_dir_all("subdir/inner").wait()?;
    share.write("file", b"text".to_vec(), &new).wait()?;
    let gone = failure(
        share.read("gone").wait(),
        "gone",
        &[Status::OBJECT_NAME_NOT_FOUND],
    )?;
    ensure!(gone.is_not_found() && io::Error::from(gone).kind() == io::ErrorKind::NotFound);
    let path = [Status::OBJECT_PATH_NOT_FOUND];
    failure(share.metadata("gone/x").wait(), "gone/x", &path)?;
    failure(share.create_dir("gone/x").wait(), "gone/x", &path)?;
    let is_there = [Status::OBJECT_NAME_COLLISION];
    failure(share.create_dir("subdir").wait(), "subdir", &is_there)?;
    failure(
        share.rename("file", "subdir", false).wait(),
        "file",
        &is_there,
    )?;
    let create = OpenOptions::new().write(true).create_new(true);
    failure(share.open("file", &create).wait(), "file", &is_there)?;
    let directory = [Status::FILE_IS_A_DIRECTORY];
    failure(share.read("subdir").wait(), "subdir", &directory)?;
    failure(share.remove_file("subdir").wait(), "subdir", &directory)?;
    failure(
        share.remove_dir("file").wait(),
        "file",
        &[Status::NOT_A_DIRECTORY],
    )?;
    failure(
        share.read_dir("file", "*").wait(),
        "file",
        &[Status::NOT_A_DIRECTORY],
    )?;
    failure(
        share.remove_dir("subdir").wait(),
        "subdir",
        &[Status::DIRECTORY_NOT_EMPTY],
    )?;
    ensure!(rig.path("subdir/inner").is_dir(), "it is gone");
    rig.assert_holds("file", b"text")
}

/// A separate file system, so small that it is soon full.
struct Small {
    path: PathBuf,
    _scratch: Scratch,
}

impl Small {
    fn new() -> Result<Small> {
        if !is_root() {
            return Err(Missing("only root mounts a file system".into()).into());
        }
        let scratch = Scratch::new("small")?;
        let path = scratch.open_directory("share")?;
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=4m,mode=777", "none"])
            .arg(&path)
            .output()?;
        if !mounted.status.success() {
            let why = String::from_utf8_lossy(&mounted.stderr).into_owned();
            return Err(Missing(format!("no file system can be mounted: {why}")).into());
        }
        Ok(Small {
            path,
            _scratch: scratch,
        })
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount")
            .arg("--lazy")
            .arg(&self.path)
            .status();
    }
}

fn a_full_disk_is_reported(peer: Peer) -> Result<()> {
    let small = Small::new()?;
    let rig = Rig::sharing(peer, Scratch::new("client")?, small.path(), |_| ())?;
    let share = rig.share()?;
    let new = WriteOptions::default();
    let volume = share.volume().wait()?;
    ensure!(volume.total == 4 << 20, "{volume:?}");
    let writing = share.write("large", pattern(8 << 20, 1), &new).wait();
    let error = failure(writing, "large", &[Status::DISK_FULL])?;
    ensure!(io::Error::from(error).kind() == io::ErrorKind::StorageFull);
    // With free space it works again.
    share.remove_file("large").wait()?;
    // The server frees the space of a deleted file after its response.
    wait::until("free space", TIME_LIMIT, || {
        let fits = share.write("fits", pattern(2 << 20, 2), &new);
        fits.wait().is_ok()
    })?;
    rig.assert_holds("fits", &pattern(2 << 20, 2))?;
    // A copy on the server has no more space than other writes.
    fs::write(rig.path("filler"), vec![1; 1 << 20])?;
    let copying = share.copy("fits", &share, "copy", &mut |_| ()).wait();
    failure(copying, "copy", &[Status::DISK_FULL])?;
    Ok(())
}
