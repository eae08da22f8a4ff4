//! The user file returns the groups, app passwords and rules that were written to it, and names the
//! logins that a change makes invalid.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use smbeam_auth::{
    APP_PASSWORDS_MAX, AccountChange, AppPassword, AppPasswordRights, ChangedLogins, FileTime,
    Imported, NameError, NtHash, UserFile, UserFileError, parse_smbpasswd,
};

const HASH: &str = "a4f49c406510bdcab6824ee7c30fd852";

struct Directory(tempfile::TempDir);

impl Directory {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary directory"))
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("users.toml")
    }

    fn load(&self) -> UserFile {
        UserFile::load(self.path()).expect("a good file")
    }

    /// A file with these users.
    fn with(&self, names: &[&str]) -> UserFile {
        let mut file = self.load();
        for name in names {
            file.add(name, "secret", None).expect("a new user");
        }
        file
    }

    fn error(&self, content: &str) -> String {
        fs::write(self.path(), content).expect("the directory is writable");
        let mode = fs::Permissions::from_mode(0o600);
        fs::set_permissions(self.path(), mode).expect("the file is ours");
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

fn app_password(name: &str) -> AppPassword {
    AppPassword {
        rights: AppPasswordRights {
            name: name.into(),
            shares: Vec::new(),
            read_only: false,
        },
        nt_hash: NtHash::from_password(name),
        expires: None,
    }
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).into()).collect()
}

#[test]
fn groups_survive_a_reload() {
    let directory = Directory::new();
    let mut file = directory.with(&["Alice", "bob"]);
    file.add_group("Staff").expect("a new group");
    file.add_group("empty").expect("a new group");
    file.add_members("STAFF", &names(&["alice", "BOB"]))
        .expect("users");
    let users = directory.load().users();
    let staff = users.find_group("staff").expect("the group");
    assert_eq!(staff.members().collect::<Vec<_>>(), ["Alice", "bob"]);
    assert!(staff.has("ALICE") && !users.find_group("empty").expect("it").has("alice"));
    file.remove_members("staff", &names(&["Bob"]))
        .expect("a member");
    file.remove("alice").expect("a user");
    let users = directory.load().users();
    assert_eq!(users.find_group("staff").expect("it").members().len(), 0);
    file.remove_group("Empty").expect("a group");
    assert_eq!(directory.load().users().groups().len(), 1);
}

#[test]
fn groups_have_unique_names_and_known_members() {
    let directory = Directory::new();
    let mut file = directory.with(&["alice"]);
    file.add_group("staff").expect("a new group");
    let before = fs::read(directory.path()).expect("written");
    for (result, expected) in [
        (file.add_group("STAFF"), "group STAFF already exists"),
        (file.add_group("a/b"), "the name may not contain '/'"),
        (file.remove_group("other"), "group other does not exist"),
        (
            file.add_members("other", &names(&["alice"])),
            "group other does not exist",
        ),
        (
            file.add_members("staff", &names(&["alice", "bob"])),
            "user bob does not exist",
        ),
        (
            file.remove_members("staff", &names(&["alice"])),
            "user alice is not in group staff",
        ),
    ] {
        assert_eq!(result.expect_err(expected).to_string(), expected);
    }
    assert_eq!(fs::read(directory.path()).expect("written"), before);
}

#[test]
fn app_passwords_survive_a_reload() {
    let directory = Directory::new();
    let mut file = directory.with(&["alice"]);
    let expires = FileTime::from_unix(1_900_000_000);
    let phone = AppPassword {
        rights: AppPasswordRights {
            name: "the \u{e4} phone".into(),
            shares: names(&["photos", "my \u{e4}"]),
            read_only: true,
        },
        expires: Some(expires),
        ..app_password("x")
    };
    file.add_app_password("ALICE", phone.clone())
        .expect("a new one");
    file.add_app_password("alice", app_password("tablet"))
        .expect("a new one");
    let users = directory.load().users();
    let alice = users.find("alice").expect("alice");
    let read = alice
        .app_password("the \u{e4} phone")
        .expect("the password");
    assert_eq!(read.rights, phone.rights);
    assert_eq!(*read.nt_hash.to_hex(), *phone.nt_hash.to_hex());
    assert_eq!(read.expires, Some(expires));
    assert!(!read.has_expired(FileTime(expires.0 - 1)) && read.has_expired(expires));
    assert_eq!(alice.app_passwords[1].expires, None);

    let error = file
        .add_app_password("alice", app_password("tablet"))
        .expect_err("known");
    assert_eq!(
        error.to_string(),
        "user alice already has an app password tablet"
    );
    let error = file
        .remove_app_password("alice", "Tablet")
        .expect_err("unknown");
    assert_eq!(error.to_string(), "user alice has no app password Tablet");
    let late = AppPassword {
        expires: Some(FileTime(u64::MAX)),
        ..app_password("late")
    };
    let error = file.add_app_password("alice", late).expect_err("too late");
    assert!(
        matches!(error, UserFileError::Name(NameError::LateExpiry)),
        "{error}"
    );
    file.remove_app_password("alice", "tablet").expect("known");
    for number in 1..APP_PASSWORDS_MAX {
        let password = app_password(&number.to_string());
        file.add_app_password("alice", password)
            .expect("below the maximum");
    }
    let error = file
        .add_app_password("alice", app_password("more"))
        .expect_err("full");
    assert!(
        matches!(error, UserFileError::AppPasswordsFull(_)),
        "{error}"
    );
}

#[test]
fn rules_hold_for_new_passwords_and_survive_a_reload() {
    let directory = Directory::new();
    let mut file = directory.with(&["alice"]);
    file.set_rules(|rules| {
        rules.min_length = 8;
        rules.refuse_name = true;
    })
    .expect("good rules");
    let mut file = directory.load();
    let error = file.add("bob", "short", None).expect_err("short");
    assert!(
        matches!(error, UserFileError::Name(NameError::ShortPassword(8))),
        "{error}"
    );
    let error = file
        .set_password("ALICE", "I am Alice")
        .expect_err("the name");
    assert!(
        matches!(error, UserFileError::Name(NameError::PasswordHasName)),
        "{error}"
    );
    file.set_password("alice", "long enough").expect("good");
    let error = file
        .set_rules(|rules| rules.min_classes = 5)
        .expect_err("four classes");
    assert_eq!(error.to_string(), "password_rules.min_classes: 5 is over 4");
    assert_eq!(directory.load().users().rules.min_classes, 0);
}

#[test]
fn errors_name_the_line_and_the_key() {
    let directory = Directory::new();
    let user = format!("[[user]]\nname = \"alice\"\nnt_hash = \"{HASH}\"\n");
    let app = format!("{user}[[user.app_password]]\nname = \"phone\"\n");
    for (content, expected) in [
        (
            format!("{app}nt_hash = \"1\"\n"),
            "line 6: nt_hash: not 32 hexadecimal digits",
        ),
        (
            format!("{app}nt_hash = \"{HASH}\"\nexpires = 2030-01-31\n"),
            "line 7: app_password.expires: not a time with its offset from UTC, such as \
             2030-01-31T12:00:00Z",
        ),
        (
            format!(
                "{app}nt_hash = \"{HASH}\"\n[[user.app_password]]\nname = \"phone\"\n\
                 nt_hash = \"{HASH}\"\n"
            ),
            "line 8: app_password.name: the user has two app passwords of this name",
        ),
        (
            format!("{user}[[group]]\nname = \"staff\"\nmembers = [\"alice\", \"bob\"]\n"),
            "line 6: members: there is no user bob",
        ),
        (
            format!("{user}[[group]]\nname = \"staff\"\nmembers = [\"alice\", \"ALICE\"]\n"),
            "line 6: members: ALICE is listed twice",
        ),
        (
            "[[group]]\nname = \"a\"\n[[group]]\nname = \"A\"\n".to_owned(),
            "line 4: name: the group is listed twice",
        ),
        (
            "\n[password_rules]\nmin_length = 1000\n".to_owned(),
            "line 2: password_rules: min_length: 1000 is over 256",
        ),
    ] {
        assert_eq!(directory.error(&content), expected);
    }
    let unknown = directory.error("[password_rules]\nlength = 8\n");
    assert!(
        unknown.starts_with("line 2: unknown field `length`"),
        "{unknown}"
    );
}

#[test]
fn a_file_that_would_become_too_long_stays_as_it_was() {
    let directory = Directory::new();
    let mut file = directory.with(&["alice"]);
    let name = "n".repeat(250);
    let entries: String = (0..9999)
        .map(|number| format!("{name}{number}:0::{HASH}:[U ]:\n"))
        .collect();
    let entries: Vec<_> = parse_smbpasswd(entries.as_bytes())
        .map(|(_, entry)| entry.expect("an account"))
        .collect();
    file.import(&entries, false).expect("it fits");
    let before = fs::read(directory.path()).expect("written");
    let long = AppPassword {
        rights: AppPasswordRights {
            shares: vec!["s".repeat(20_000); 64],
            ..app_password("x").rights
        },
        ..app_password("x")
    };
    let error = file.add_app_password("alice", long).expect_err("too long");
    assert!(matches!(error, UserFileError::TooLong(_)), "{error}");
    assert_eq!(fs::read(directory.path()).expect("written"), before);
}

#[test]
fn changes_name_the_logins_that_no_longer_count() {
    let directory = Directory::new();
    let mut file = directory.with(&["alice", "bob", "carol"]);
    file.add_group("staff").expect("a new group");
    file.add_members("staff", &names(&["bob", "carol"]))
        .expect("users");
    for name in ["phone", "tablet", "tv"] {
        file.add_app_password("alice", app_password(name))
            .expect("a new one");
    }
    let earlier = file.users();
    file.remove_app_password("alice", "phone").expect("known");
    file.remove_app_password("alice", "tv").expect("known");
    let read_only = AppPassword {
        rights: AppPasswordRights {
            read_only: true,
            ..app_password("tv").rights
        },
        ..app_password("tv")
    };
    file.add_app_password("alice", read_only).expect("removed");
    file.remove_members("staff", &names(&["bob"]))
        .expect("a member");
    file.add_members("staff", &names(&["alice"]))
        .expect("a user");
    let changed = |account: &str, password: Option<&str>, change| ChangedLogins {
        account: account.into(),
        app_password: password.map(Into::into),
        change,
    };
    let expected = [
        changed("alice", Some("phone"), AccountChange::AppPassword),
        changed("alice", Some("tv"), AccountChange::AppPassword),
        changed("bob", None, AccountChange::LeftGroup),
    ];
    assert_eq!(file.users().changes_since(&earlier), expected);
    // A removed group has no members.
    let earlier = file.users();
    file.remove_group("staff").expect("known");
    assert_eq!(file.users().changes_since(&earlier).len(), 2);
}

#[test]
fn app_passwords_expire_once() {
    let directory = Directory::new();
    let mut file = directory.with(&["alice"]);
    let time = FileTime::from_unix;
    let expiring = AppPassword {
        expires: Some(time(1000)),
        ..app_password("phone")
    };
    file.add_app_password("alice", expiring).expect("a new one");
    let users = file.users();
    for (from, to, expected) in [(0, 999, 0), (999, 1000, 1), (0, 2000, 1), (1000, 2000, 0)] {
        let expired = users.expired_between(time(from), time(to));
        assert_eq!(expired.len(), expected, "{from} {to}");
        let is_phone = |logins: &ChangedLogins| logins.app_password.as_deref() == Some("phone");
        assert!(expired.iter().all(is_phone));
    }
}

#[test]
fn imported_accounts_replace_others_only_on_request() {
    let directory = Directory::new();
    let mut file = directory.with(&["alice"]);
    file.add_app_password("alice", app_password("phone"))
        .expect("a new one");
    let lines = format!("ALICE:1000:X:{HASH}:[U ]:LCT-0:\nbob:1001:X:{HASH}:[UD ]:LCT-0:\n");
    let entries: Vec<_> = parse_smbpasswd(lines.as_bytes())
        .map(|(_, entry)| entry.expect("an account"))
        .collect();
    let first = file.import(&entries, false).expect("good");
    assert_eq!(first, [Imported::Kept, Imported::Added]);
    let users = directory.load().users();
    assert!(users.find("bob").expect("bob").is_disabled);
    assert_ne!(*users.find("alice").expect("alice").nt_hash.to_hex(), HASH);
    let second = file.import(&entries, true).expect("good");
    assert_eq!(second, [Imported::Replaced, Imported::Replaced]);
    let users = directory.load().users();
    let alice = users.find("alice").expect("alice");
    assert_eq!((&*alice.name, &**alice.nt_hash.to_hex()), ("alice", HASH));
    assert!(alice.app_password("phone").is_some());
}
