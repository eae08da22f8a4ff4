//! The log of the server has the reason of a refused login, share and file, and the key of the
//! configuration that causes it.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use smbeam_tests::lab::{Lab, Missing};
use smbeam_tests::samba_tools::SambaTools;
use smbeam_tests::scratch::Scratch;
use smbeam_tests::smbclient::{Protection, Smbclient};
use smbeam_tests::subject::{ALICE, BOB, Plan, Server, Share, Subject};
use smbeam_tests::{tests, wait};

tests!(
    required_encryption_is_the_reason,
    a_denied_access_has_path_and_permissions,
    a_denied_access_has_the_entry_of_the_descriptor,
);

/// Time in which a line appears in the log.
const TIME_LIMIT: Duration = Duration::from_secs(20);

/// The log is that of smbeam.
fn check_subject() -> Result<()> {
    match Subject::chosen() {
        Subject::Smbeam => Ok(()),
        Subject::Samba => Err(Missing("the log of smbd has another form".into()).into()),
    }
}

/// Waits for a line of the log with all of these parts, and returns it.
fn line(server: &Server, parts: &[&str]) -> Result<String> {
    let mut found = None;
    let result = wait::until("a line of the log", TIME_LIMIT, || {
        let log = server.log();
        let mut lines = log.lines();
        found = lines
            .find(|line| parts.iter().all(|part| line.contains(part)))
            .map(str::to_owned);
        found.is_some()
    });
    match found {
        Some(line) => Ok(line),
        None => bail!("{parts:?}: {result:?}:\n{}", server.log()),
    }
}

fn required_encryption_is_the_reason() -> Result<()> {
    check_subject()?;
    let lab = Lab::find()?;
    let scratch = Scratch::new("reasons")?;
    let mut plan = Plan::sharing(&scratch.open_directory("share")?);
    plan.encryption_required = true;
    plan.shares[0].guests = true;
    let server = Server::start(&lab, plan)?;
    let client = Smbclient::new(&lab, &server).protection(Protection::Off);
    let guest = client.clone().login("stranger%none").try_run("ls")?;
    ensure!(guest.code != Some(0), "{guest}");
    let old = client.user(ALICE).dialect("SMB2_10").try_run("ls")?;
    ensure!(old.code != Some(0), "{old}");
    let key = "key=security.encryption_required";
    line(
        &server,
        &[
            "login refused",
            "user=alice",
            "no encryption",
            "code=login-client-cannot-encrypt",
            key,
        ],
    )?;
    let log = server.log();
    ensure!(!log.contains("logged in"), "{log}");
    Ok(())
}

fn a_denied_access_has_path_and_permissions() -> Result<()> {
    check_subject()?;
    let lab = Lab::find()?;
    let scratch = Scratch::new("denials")?;
    let directory = scratch.open_directory("share")?;
    let mut plan = Plan::sharing(&directory);
    let mut private = Share::new("private", &directory);
    private.users = vec![BOB.name.to_owned()];
    plan.shares.push(private);
    for (name, mode) in [("closed", 0o750), ("open", 0o755)] {
        let path = directory.join(name);
        fs::create_dir(&path)?;
        fs::set_permissions(&path, Permissions::from_mode(mode))?;
        fs::write(path.join("a file"), "text")?;
        fs::set_permissions(path.join("a file"), Permissions::from_mode(0o640))?;
        chown(path.join("a file"), Some(BOB.id), Some(0))?;
    }
    let server = Server::start(&lab, plan)?;
    let client = Smbclient::new(&lab, &server)
        .user(ALICE)
        .directory(scratch.path());
    let denied = client.try_run("get \"open/a file\" got")?;
    ensure!(denied.text.contains("ACCESS_DENIED"), "{denied}");
    let unix = format!("unix=alice({})", ALICE.id);
    line(
        &server,
        &[
            "access denied",
            "user=alice",
            &unix,
            "share=data",
            "path=\"/open/a file\"",
            "denied_by=\"/open/a file\"",
            "missing=read",
            "code=access-unix-permissions",
            "mode=0640",
            "owner=bob:root",
        ],
    )?;
    let denied = client.try_run("get \"closed/a file\" got")?;
    ensure!(denied.text.contains("ACCESS_DENIED"), "{denied}");
    line(
        &server,
        &[
            "access denied",
            "path=\"/closed/a file\"",
            "denied_by=/closed ",
            "missing=search",
            "mode=0750",
            "owner=root:root",
        ],
    )?;
    let refused = client.share("private").try_run("ls")?;
    ensure!(refused.text.contains("ACCESS_DENIED"), "{refused}");
    line(
        &server,
        &[
            "share refused",
            "user=alice",
            "share=private",
            "code=share-user-not-listed",
            "key=share.valid_users",
        ],
    )?;
    Ok(())
}

fn a_denied_access_has_the_entry_of_the_descriptor() -> Result<()> {
    check_subject()?;
    let lab = Lab::find()?;
    let scratch = Scratch::new("denials")?;
    let directory = scratch.open_directory("share")?;
    let server = Server::start(&lab, Plan::sharing(&directory))?;
    let client = Smbclient::new(&lab, &server);
    let bob = client.clone().user(BOB);
    bob.run("put /etc/hostname listed")?;
    let tools = SambaTools::new(&lab, &server).user(BOB);
    let entry = "ACL:S-1-22-1-2001:DENIED/0x0/0x00000002";
    tools.smbcacls("listed", &["-a", entry])?;
    tools.smbcacls("listed", &["-a", "ACL:S-1-22-1-2001:ALLOWED/0x0/READ"])?;
    let denied = client.try_run("put /etc/hostname listed")?;
    ensure!(denied.text.contains("ACCESS_DENIED"), "{denied}");
    line(
        &server,
        &[
            "access denied",
            "user=alice",
            "path=/listed",
            "missing=descriptor",
            "code=access-descriptor",
            "entry 1 denies S-1-22-1-2001",
        ],
    )?;
    Ok(())
}
