//! The user file returns the accounts that were written to it, names the line of an error, and is
//! readable by its owner only.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use smbeam_auth::{AccountChange, ChangedLogins, NameError, NtHash, UserFile, UserFileError};

struct Directory {
    directory: tempfile::TempDir,
}

impl Directory {
    fn new() -> Self {
        Self {
            directory: tempfile::tempdir().expect("a temporary directory"),
        }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("users.toml")
    }

    fn write(&self, content: &str) {
        fs::write(self.path(), content).expect("the directory is writable");
        fs::set_permissions(self.path(), fs::Permissions::from_mode(0o600))
            .expect("the file is ours");
    }

    fn load(&self) -> UserFile {
        UserFile::load(self.path()).expect("a good file")
    }

    fn error(&self, content: &str) -> String {
        self.write(content);
        let error = UserFile::load(self.path())
            .expect_err("a bad file")
            .to_string();
        let path = format!("{}: ", self.path().display());
        error
            .strip_prefix(&path)
            .expect("the error names the file")
            .into()
    }
}

#[test]
fn accounts_survive_a_reload() {
    let directory = Directory::new();
    let mut file = directory.load();
    assert_eq!(file.list().len(), 0);
    file.add("Alice", "Password", Some("al"))
        .expect("a new user");
    file.add("b\u{f6}b \"x", "Password", None)
        .expect_err("a quote");
    file.add("b\u{f6}b", "other", None).expect("a new user");
    file.set_disabled("B\u{d6}B", true).expect("a known user");

    let read = directory.load();
    let users = read.users();
    let alice = users.find("aLICE").expect("alice");
    assert_eq!(alice.name, "Alice");
    assert_eq!(alice.unix.as_deref(), Some("al"));
    assert_eq!(
        *alice.nt_hash.to_hex(),
        *NtHash::from_password("Password").to_hex()
    );
    assert!(!alice.is_disabled);
    assert!(users.find("b\u{f6}b").expect("bob").is_disabled);

    file.set_password("ALICE", "new").expect("a known user");
    file.remove("B\u{d6}b").expect("a known user");
    let users = directory.load().users();
    assert_eq!(users.len(), 1);
    let alice = users.find("alice").expect("alice");
    assert_eq!(
        *alice.nt_hash.to_hex(),
        *NtHash::from_password("new").to_hex()
    );
}

#[test]
fn names_are_unique_without_case() {
    let directory = Directory::new();
    let mut file = directory.load();
    file.add("alice", "secret", None).expect("a new user");
    let error = file.add("ALICE", "secret", None).expect_err("a known user");
    assert!(matches!(error, UserFileError::Exists(_)));
    assert!(matches!(file.remove("bob"), Err(UserFileError::Unknown(_))));
    assert!(matches!(
        file.set_password("bob", "x"),
        Err(UserFileError::Unknown(_))
    ));
}

#[test]
fn empty_passwords_and_invalid_names_are_refused() {
    let directory = Directory::new();
    let mut file = directory.load();
    let mut error = |name: &str, password: &str| match file.add(name, password, None) {
        Err(UserFileError::Name(error)) => error,
        other => panic!("{other:?}"),
    };
    assert_eq!(error("alice", ""), NameError::EmptyPassword);
    assert_eq!(error("", "secret"), NameError::EmptyName);
    assert_eq!(error("a\\b", "secret"), NameError::Character('\\'));
    assert_eq!(error("a\nb", "secret"), NameError::Character('\n'));
    assert_eq!(error(&"a".repeat(257), "secret"), NameError::LongName);
    assert_eq!(error("alice", &"a".repeat(257)), NameError::LongPassword);
    assert!(!directory.path().exists());
}

#[test]
fn files_that_others_can_read_are_refused() {
    let directory = Directory::new();
    directory
        .load()
        .add("alice", "secret", None)
        .expect("a new user");
    let mode = fs::metadata(directory.path())
        .expect("written")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    for mode in [0o640, 0o604, 0o620, 0o644] {
        let permissions = fs::Permissions::from_mode(mode);
        fs::set_permissions(directory.path(), permissions).expect("ours");
        let error = UserFile::load(directory.path())
            .expect_err("readable")
            .to_string();
        assert!(error.contains("chmod 600"), "{error}");
    }
}

#[test]
fn errors_name_the_line_and_the_key() {
    let directory = Directory::new();
    let hash = "nt_hash = \"a4f49c406510bdcab6824ee7c30fd852\"";
    assert_eq!(
        directory.error("[[user]]\nname = \"alice\"\nnt_hash = \"123\"\n"),
        "line 3: nt_hash: not 32 hexadecimal digits"
    );
    assert_eq!(
        directory.error(&format!("[[user]]\nname = \"a/b\"\n{hash}\n")),
        "line 2: name: the name may not contain '/'"
    );
    assert_eq!(
        directory.error(&format!(
            "[[user]]\nname='a'\n{hash}\n[[user]]\nname='A'\n{hash}\n"
        )),
        "line 5: name: the user is listed twice"
    );
    let unknown = directory.error(&format!("[[user]]\nname='a'\n{hash}\npasword='x'\n"));
    assert!(
        unknown.starts_with("line 4: unknown field `pasword`"),
        "{unknown}"
    );
    let missing = directory.error("[[user]]\nname='a'\n");
    assert!(missing.contains("missing field `nt_hash`"), "{missing}");
    assert!(directory.error("[[user]\n").starts_with("line 1: "));
}

#[test]
fn changes_of_another_process_are_read_and_preserved() {
    let directory = Directory::new();
    let (mut ours, mut theirs) = (directory.load(), directory.load());
    theirs.add("alice", "secret", None).expect("a new user");
    // `ours` has read an empty file; `add` must read the file again and keep alice.
    ours.add("bob", "secret", None).expect("a new user");
    assert_eq!(directory.load().list().len(), 2);
    assert!(theirs.reload_if_changed().expect("a good file"));
    assert!(theirs.users().find("bob").is_some());
    assert!(!theirs.reload_if_changed().expect("a good file"));
}

#[test]
fn a_broken_file_leaves_the_accounts_unchanged() {
    let directory = Directory::new();
    let mut file = directory.load();
    file.add("alice", "secret", None).expect("a new user");
    directory.write("nonsense");
    file.reload_if_changed().expect_err("nonsense");
    assert!(file.users().find("alice").is_some());
    file.add("bob", "secret", None)
        .expect_err("nonsense is not overwritten");
}

/// Bug: without the file, every user became a guest.
#[test]
fn a_file_that_vanishes_or_is_emptied_leaves_the_accounts_unchanged() {
    let directory = Directory::new();
    let mut file = directory.load();
    assert!(
        !file
            .reload_if_changed()
            .expect("it is missing from the start")
    );
    file.add("alice", "secret", None).expect("a new user");
    directory.write("");
    let error = file.reload_if_changed().expect_err("empty");
    assert!(matches!(error, UserFileError::Emptied(_)), "{error}");
    fs::remove_file(directory.path()).expect("ours");
    for _ in 0..2 {
        let error = file.reload_if_changed().expect_err("missing");
        assert!(matches!(error, UserFileError::Vanished(_)), "{error}");
        assert!(file.users().find("alice").is_some());
    }
    directory.write("# No users.\n");
    assert!(file.reload_if_changed().expect("a good file"));
    assert!(file.users().is_empty());
}

#[test]
fn changes_name_the_accounts_with_logins_that_no_longer_count() {
    let directory = Directory::new();
    let mut file = directory.load();
    for name in ["alice", "bob", "carol", "dave", "erin"] {
        file.add(name, "secret", None).expect("a new user");
    }
    let earlier = file.users();
    assert_eq!(file.users().changes_since(&earlier), []);
    file.remove("alice").expect("a known user");
    file.set_password("bob", "another").expect("a known user");
    file.set_disabled("carol", true).expect("a known user");
    file.remove("dave").expect("a known user");
    file.add("dave", "secret", Some("unix")).expect("removed");
    file.add("frank", "secret", None).expect("a new user");
    let changed = file.users().changes_since(&earlier);
    let expected = [
        ("alice", AccountChange::Removed),
        ("bob", AccountChange::Password),
        ("carol", AccountChange::Disabled),
        ("dave", AccountChange::UnixAccount),
    ];
    let expected = expected.map(|(name, change)| ChangedLogins {
        account: name.to_owned(),
        app_password: None,
        change,
    });
    assert_eq!(changed, expected);
    // An enabled account has no sessions from before.
    let earlier = file.users();
    file.set_disabled("carol", false).expect("a known user");
    assert_eq!(file.users().changes_since(&earlier), []);
}

#[test]
fn a_temporary_file_of_a_crash_does_not_prevent_a_write() {
    let directory = Directory::new();
    fs::write(directory.directory.path().join("users.toml.new"), "half").expect("ours");
    directory
        .load()
        .add("alice", "secret", None)
        .expect("a new user");
    assert!(directory.load().users().find("alice").is_some());
}
