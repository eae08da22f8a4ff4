//! When an account is removed, disabled or has another password, its sessions end, and the error
//! says so. A user file that vanishes changes nothing.

mod rig;

use std::fs;
use std::path::{Path, PathBuf};

use auth::UserFile;
use rig::{PASSWORD, Rig, SHARE, USER, options};
use smbeam_client::{Error, File, OpenOptions, Protection, Session, Status, Wait};
use tempfile::TempDir;

struct Site {
    directory: TempDir,
    rig: Rig,
}

impl Site {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let path = users_of(directory.path());
        let unix = smbeam_server::may_assume_identities().then_some("root");
        let mut users = UserFile::load(&path).expect("no file yet");
        users.add(USER, PASSWORD, unix).expect("a new user");
        users.add("bob", "secret", unix).expect("a new user");
        let rig = Rig::with(|config| config.server.users = Some(path));
        Self { directory, rig }
    }

    /// Changes the user file, and makes the server read it.
    fn change(&self, change: impl FnOnce(&mut UserFile)) {
        let mut users = UserFile::load(self.path()).expect("a user file");
        change(&mut users);
        self.rig.reload();
    }

    fn path(&self) -> PathBuf {
        users_of(self.directory.path())
    }

    fn log_in(&self) -> Result<Session, Error> {
        // An encrypted session would end with its connection.
        self.rig.connect(options().protection(Protection::Sign))
    }

    fn open(&self) -> (Session, File) {
        let session = self.log_in().expect("a session");
        let share = session.share(SHARE).wait().expect("a share");
        let create = OpenOptions::new().read(true).write(true).create(true);
        let file = share.open("file", &create).wait().expect("a file");
        (session, file)
    }
}

fn users_of(directory: &Path) -> PathBuf {
    directory.join("users.toml")
}

fn query(file: &File) -> Result<(), Error> {
    file.metadata().wait().map(drop)
}

#[test]
fn the_sessions_of_a_changed_account_end() {
    type Change = fn(&mut UserFile);
    let changes: [(Change, Option<Status>); 4] = [
        (
            |users| users.set_disabled(USER, true).expect("a known user"),
            Some(Status::ACCOUNT_DISABLED),
        ),
        (
            |users| users.set_password(USER, "another").expect("a known user"),
            Some(Status::LOGON_FAILURE),
        ),
        (
            |users| users.remove(USER).expect("a known user"),
            Some(Status::LOGON_FAILURE),
        ),
        (|users| users.remove("bob").expect("a known user"), None),
    ];
    for (change, expected) in changes {
        let site = Site::new();
        let (_session, file) = site.open();
        site.change(change);
        let result = query(&file);
        let Some(status) = expected else {
            result.expect("another account has changed");
            continue;
        };
        let error = result.expect_err("the session has ended");
        assert!(error.is_lost(), "{error}");
        assert!(
            error.to_string().contains("the server ended the session"),
            "{error}"
        );
        let error = site.log_in().expect_err("the account has changed");
        assert_eq!(error.status(), Some(status), "{error}");
    }
}

#[test]
fn an_enabled_account_logs_in_again() {
    let site = Site::new();
    let (_session, file) = site.open();
    site.change(|users| users.set_disabled(USER, true).expect("a known user"));
    assert!(query(&file).is_err());
    site.change(|users| users.set_disabled(USER, false).expect("a known user"));
    let (_session, file) = site.open();
    query(&file).expect("a new session");
}

/// Bug: without its user file the server knew no account.
#[test]
fn a_user_file_that_vanishes_changes_nothing() {
    let site = Site::new();
    let (_session, file) = site.open();
    fs::remove_file(site.path()).expect("a file");
    site.rig.reload();
    query(&file).expect("the session continues");
    site.open();
}
