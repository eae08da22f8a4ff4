use std::fs;
use std::path::{Path, PathBuf};

use auth::UserFile;

use super::{Access, Check, Question, Verdict, examine};
use crate::config::Config;

/// A directory with a user file, and a configuration.
struct Site {
    directory: tempfile::TempDir,
    config: Config,
}

impl Site {
    /// The share `data` with further keys, and the users alice and bob, which is disabled.
    fn new(keys: &str) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name);
        fs::create_dir(path("data")).expect("a directory");
        let mut users = UserFile::load(path("users.toml")).expect("a new file");
        for name in ["alice", "bob"] {
            let added = users.add(name, "a long password", Some("root"));
            added.expect("a new user");
        }
        users.set_disabled("bob", true).expect("a user");
        let text = format!(
            "[server]\nlisten = [\"127.0.0.1\"]\ntransports = [\"tcp:0\"]\nusers = \"{}\"\n\
             state_directory = \"{}\"\n[[share]]\nname = \"data\"\npath = \"{}\"\n{keys}",
            path("users.toml").display(),
            directory.path().display(),
            path("data").display(),
        );
        let config = Config::parse(Path::new("smbeam.toml"), &text).expect("a good file");
        Self { directory, config }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join("data").join(name)
    }

    fn ask(&self, user: &str, path: Option<&str>, access: &[Access]) -> Vec<Check> {
        let question = Question {
            user: Some(user.to_owned()),
            path: path.map(Into::into),
            access: access.to_vec(),
            ..Question::default()
        };
        examine(&self.config, &question)
    }

    /// The codes of the refusals.
    fn refusals(&self, user: &str, path: Option<&str>) -> Vec<&'static str> {
        refusals(&self.ask(user, path, &[Access::Read]))
    }
}

fn refusals(checks: &[Check]) -> Vec<&'static str> {
    let refused = checks
        .iter()
        .filter(|check| check.verdict == Verdict::Refused);
    refused.filter_map(|check| check.code).collect()
}

#[test]
fn a_good_server_refuses_nothing() {
    let site = Site::new("");
    fs::write(site.path("file"), "text").expect("a file");
    let checks = site.ask("alice", Some("file"), &Access::ALL);
    assert_eq!(refusals(&checks), Vec::<&str>::new(), "{checks:?}");
    let reads = checks
        .iter()
        .any(|check| check.message.starts_with("alice can read it"));
    assert!(reads, "{checks:?}");
}

#[test]
fn accounts_are_examined() {
    let site = Site::new("");
    assert_eq!(site.refusals("mallory", None), ["login-unknown-user"]);
    assert_eq!(site.refusals("bob", None), ["login-account-disabled"]);
    assert_eq!(site.refusals("ALICE", None), Vec::<&str>::new());
    let guests = Site::new("guest = true\n");
    assert_eq!(guests.refusals("guest", None), ["login-guest-cannot-sign"]);
}

#[test]
fn rules_of_shares_are_examined() {
    let site = Site::new("users = [\"bob\"]\n");
    assert_eq!(site.refusals("alice", None), ["share-user-not-listed"]);
    let site = Site::new("read_only = true\n");
    let checks = site.ask("alice", None, &[Access::Read, Access::Write]);
    assert_eq!(refusals(&checks), ["share-read-only"]);
    let question = Question {
        share: Some("other".to_owned()),
        ..Question::default()
    };
    assert_eq!(
        refusals(&examine(&site.config, &question)),
        ["share-unknown"]
    );
    fs::remove_dir(site.path("")).expect("an empty directory");
    assert_eq!(site.refusals("alice", None), ["config-share-directory"]);
}

#[test]
fn paths_are_examined() {
    let site = Site::new("");
    fs::create_dir(site.path("Directory")).expect("a directory");
    fs::write(site.path("Directory/File"), "text").expect("a file");
    std::os::unix::fs::symlink("/etc", site.path("outside")).expect("a link");
    std::os::unix::fs::symlink("Directory", site.path("inside")).expect("a link");
    let missing = ["path-missing"];
    for (path, expected) in [
        ("directory/FILE", &[][..]),
        ("inside/File", &[]),
        ("Directory/none", &missing),
        ("Directory/File/more", &["path-not-directory"]),
        ("outside/passwd", &["path-leaves-share"]),
        ("/etc/passwd", &["path-outside-of-shares"]),
    ] {
        assert_eq!(site.refusals("alice", Some(path)), expected, "{path}");
    }
}

#[test]
fn a_port_in_use_is_found() {
    let busy = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = busy.local_addr().expect("an address").port();
    let text = format!("[server]\nlisten = [\"127.0.0.1\"]\ntransports = [\"tcp:{port}\"]\n");
    let config = Config::parse(Path::new("smbeam.toml"), &text).expect("a good file");
    let refused = examine(&config, &Question::default());
    assert_eq!(refusals(&refused), ["config-listen"], "{refused:?}");
    let running = Question {
        is_running: true,
        ..Question::default()
    };
    assert_eq!(refusals(&examine(&config, &running)), Vec::<&str>::new());
}
