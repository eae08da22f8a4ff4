//! The credentials file `~/.config/smbeam/credentials.toml`: user names and passwords by server.
//!
//! The file contains passwords, so only its owner may have access. A file with wider permissions is
//! an error.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use wire::upcase::is_same_name;

use crate::directory::user_file;
use crate::error::Error;

/// Maximum size of the file in bytes.
const MAX_BYTES: u64 = 1 << 20;
/// Permission bits that must be clear: all access by group and others.
const FORBIDDEN_MODE: u32 = 0o077;

/// The contents of the file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CredentialsFile {
    /// The `[[login]]` entries in the order of the file.
    #[serde(default)]
    login: Vec<LoginEntry>,
}

/// The login for a server or share.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoginEntry {
    /// The host name as in the URL, in any case.
    pub host: String,
    /// The share to which the entry is limited. Without it, the entry applies to all shares of the
    /// host.
    pub share: Option<String>,
    /// The domain of the user.
    pub domain: Option<String>,
    /// The user name. The entry applies to URLs with this user name and to URLs without one.
    pub user: Option<String>,
    /// The password.
    pub password: Option<String>,
    /// A file with the password in its first line.
    pub password_file: Option<PathBuf>,
}

impl std::fmt::Debug for LoginEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoginEntry")
            .field("host", &self.host)
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

impl CredentialsFile {
    /// The path of the user's file: `~/.config/smbeam/credentials.toml`. `None` without a home
    /// directory.
    pub fn path() -> Option<PathBuf> {
        user_file("credentials.toml")
    }

    /// Reads a file.
    ///
    /// # Errors
    /// The file cannot be read or has a mistake, or other users have access to it.
    pub fn load(path: &Path) -> Result<Self, Error> {
        let failed = |reason| Error::File {
            path: path.to_owned(),
            reason,
        };
        let text = read(path).map_err(failed)?;
        toml::from_str(&text).map_err(|error| failed(without_source(&error, &text)))
    }

    /// Finds the best entry. An entry for the share precedes one for the host, then an entry for
    /// the user precedes one for any user. Of equal entries the first one counts.
    pub fn find(&self, host: &str, share: Option<&str>, user: Option<&str>) -> Option<&LoginEntry> {
        let mut best: Option<(&LoginEntry, u8)> = None;
        for login in &self.login {
            let Some(rank) = login.rank(host, share, user) else {
                continue;
            };
            if best.is_none_or(|(_, known)| rank > known) {
                best = Some((login, rank));
            }
        }
        best.map(|(login, _)| login)
    }
}

impl LoginEntry {
    /// How well the entry matches (0 to 3), or `None` if it does not match.
    fn rank(&self, host: &str, share: Option<&str>, user: Option<&str>) -> Option<u8> {
        if !self.host.eq_ignore_ascii_case(host) {
            return None;
        }
        let share_rank = rank_of(self.share.as_deref(), share)?;
        let user_rank = match (self.user.as_deref(), user) {
            // A request without a user name takes the user name of the entry.
            (Some(_), None) => 1,
            (own, wanted) => rank_of(own, wanted)?,
        };
        Some(share_rank * 2 + user_rank)
    }
}

/// 1 if the entry names the wanted value, 0 if it names none, and `None` if it names another one.
fn rank_of(own: Option<&str>, wanted: Option<&str>) -> Option<u8> {
    match (own, wanted) {
        (None, _) => Some(0),
        (Some(own), Some(wanted)) if is_same_name(own, wanted) => Some(1),
        _ => None,
    }
}

fn read(path: &Path) -> Result<String, String> {
    let mut file = File::open(path).map_err(|error| error.to_string())?;
    let metadata = file.metadata().map_err(|error| error.to_string())?;
    check_owner_and_mode(metadata.uid(), metadata.mode())?;
    let mut text = String::new();
    let length = file.by_ref().take(MAX_BYTES + 1).read_to_string(&mut text);
    match length.map_err(|error| error.to_string())? as u64 > MAX_BYTES {
        true => Err("the file has more than 1 MiB".to_owned()),
        false => Ok(text),
    }
}

fn check_owner_and_mode(uid: u32, mode: u32) -> Result<(), String> {
    let own = rustix::process::geteuid().as_raw();
    if uid != own && uid != 0 {
        return Err(format!("the file belongs to another user (user id {uid})"));
    }
    if mode & FORBIDDEN_MODE != 0 {
        return Err(format!(
            "other users can read the passwords in it (mode {:04o}): run chmod 600 on it",
            mode & 0o7777
        ));
    }
    Ok(())
}

/// The error with its line number, without the text of the line, which can contain a password.
fn without_source(error: &toml::de::Error, text: &str) -> String {
    let line = error
        .span()
        .and_then(|span| text.get(..span.start))
        .map_or(1, |before| before.matches('\n').count() + 1);
    format!("line {line}: {}", error.message())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    const TEXT: &str = "\
        [[login]]\nhost = \"nas\"\nuser = \"any\"\npassword = \"1\"\n\
        [[login]]\nhost = \"nas\"\nshare = \"Data\"\nuser = \"alice\"\npassword = \"2\"\n\
        [[login]]\nhost = \"nas\"\nuser = \"bob\"\ndomain = \"W\"\npassword_file = \"/p\"\n\
        [[login]]\nhost = \"other\"\npassword = \"4\"\n";

    fn load(text: &str, mode: u32) -> Result<CredentialsFile, String> {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("credentials.toml");
        fs::write(&path, text).expect("a file");
        fs::set_permissions(&path, Permissions::from_mode(mode)).expect("a mode");
        CredentialsFile::load(&path).map_err(|error| match error {
            Error::File {
                path: named,
                reason,
            } if named == path => reason,
            other => panic!("{other}"),
        })
    }

    #[test]
    fn the_entry_that_fits_best_is_taken() {
        let file = load(TEXT, 0o600).expect("a file");
        let user = |share, user| {
            let login = file.find("NAS", share, user)?;
            login.user.clone()
        };
        assert_eq!(user(None, None).as_deref(), Some("any"));
        assert_eq!(user(Some("data"), None).as_deref(), Some("alice"));
        assert_eq!(user(Some("data"), Some("bob")).as_deref(), Some("bob"));
        assert_eq!(user(Some("data"), Some("Alice")).as_deref(), Some("alice"));
        assert_eq!(user(None, Some("eve")), None);
        let other = file.find("other", None, Some("eve")).expect("an entry");
        assert_eq!(other.password.as_deref(), Some("4"));
        assert!(file.find("elsewhere", None, None).is_none());
    }

    #[test]
    fn a_file_that_others_may_read_is_not_used() {
        for mode in [0o644, 0o640, 0o604, 0o660, 0o602] {
            let error = load(TEXT, mode).expect_err("refused");
            assert!(error.contains("chmod 600"), "{error}");
        }
        assert!(load(TEXT, 0o400).is_ok());
        assert!(check_owner_and_mode(u32::MAX - 1, 0o600).is_err());
    }

    #[test]
    fn an_error_does_not_show_the_password() {
        let error = load("[[login]]\nhost = \"a\"\npasword = \"secret\"\n", 0o600);
        let error = error.expect_err("a mistake");
        assert!(error.starts_with("line 3: "), "{error}");
        assert!(
            error.contains("pasword") && !error.contains("secret"),
            "{error}"
        );
        let shown = format!("{:?}", load(TEXT, 0o600).expect("a file"));
        assert!(!shown.contains("password"), "{shown}");
    }
}
