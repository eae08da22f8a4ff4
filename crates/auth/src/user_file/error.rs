//! The reasons why the user file cannot be read or changed.

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::app_password::APP_PASSWORDS_MAX;
use crate::groups::GROUPS_MAX;
use crate::names::NameError;
use crate::users::USERS_MAX;

/// Maximum length of the file in bytes: [`USERS_MAX`] accounts with long names fit.
pub(super) const FILE_LEN_MAX: u64 = 4 << 20;

/// Why [`UserFile`](crate::UserFile) cannot read the file, or cannot change an account.
#[derive(Debug)]
pub enum UserFileError {
    /// A system call on this path failed with this error of the operating system.
    Io(PathBuf, io::Error),
    /// Users other than the owner have permissions for the file. The values are its path and the
    /// permission bits of its mode.
    Readable(PathBuf, u32),
    /// The file belongs to a user that is neither root nor the user of this process, so that user
    /// can change the accounts. The values are its path and the uid of the owner.
    ForeignOwner(PathBuf, u32),
    /// The file at this path existed and no longer does.
    Vanished(PathBuf),
    /// The file at this path had accounts and is empty now.
    Emptied(PathBuf),
    /// The file at this path is longer than 4 MiB.
    TooLong(PathBuf),
    /// The file is not valid TOML, or a key is unknown or missing. The values are its path and a
    /// message with the line.
    Syntax(PathBuf, String),
    /// A value in the file is not valid. The values are the path, the line (1-based), the key, and
    /// the reason.
    Value(PathBuf, usize, &'static str, String),
    /// The account cannot be added, because an account with this name, in upper or lower case,
    /// already exists.
    Exists(String),
    /// The account cannot be changed or removed, because no account has this name.
    Unknown(String),
    /// The account cannot be added, because the file already has [`USERS_MAX`] accounts.
    Full,
    /// No account of this name (first) has an app password of this name (second).
    UnknownAppPassword(String, String),
    /// The account of this name (first) already has an app password of this name (second).
    AppPasswordExists(String, String),
    /// The account of this name already has [`APP_PASSWORDS_MAX`] app passwords.
    AppPasswordsFull(String),
    /// No group has this name.
    UnknownGroup(String),
    /// The group cannot be added, because a group with this name, in upper or lower case, already
    /// exists.
    GroupExists(String),
    /// The group cannot be added, because the file already has [`GROUPS_MAX`] groups.
    GroupsFull,
    /// The account of this name (first) is not a member of the group of this name (second).
    NotMember(String, String),
    /// The rules for passwords are not valid. The value says which one and why.
    Rules(String),
    /// The user name or the password for an account is not valid.
    Name(NameError),
}

impl From<NameError> for UserFileError {
    fn from(error: NameError) -> Self {
        Self::Name(error)
    }
}

impl fmt::Display for UserFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(path, error) => write!(f, "{}: {error}", path.display()),
            Self::Readable(path, mode) => write!(
                f,
                "{path}: mode {mode:04o} gives other users access to the password hashes; \
                 run: chmod 600 {path}",
                path = path.display()
            ),
            Self::ForeignOwner(path, owner) => write!(
                f,
                "{path}: belongs to the user with the id {owner}, which can change the accounts; \
                 run: chown root {path}, or chown it to the user of the server",
                path = path.display()
            ),
            Self::Vanished(path) => write!(f, "{}: the file has vanished", path.display()),
            Self::Emptied(path) => write!(f, "{}: the file has become empty", path.display()),
            Self::TooLong(path) => {
                write!(f, "{}: longer than {FILE_LEN_MAX} bytes", path.display())
            }
            Self::Syntax(path, reason) => write!(f, "{}: {reason}", path.display()),
            Self::Value(path, line, key, reason) => {
                write!(f, "{}: line {line}: {key}: {reason}", path.display())
            }
            Self::Exists(name) => write!(f, "user {name} already exists"),
            Self::Unknown(name) => write!(f, "user {name} does not exist"),
            Self::Full => write!(f, "the file already has {USERS_MAX} users, the maximum"),
            Self::UnknownAppPassword(user, name) => {
                write!(f, "user {user} has no app password {name}")
            }
            Self::AppPasswordExists(user, name) => {
                write!(f, "user {user} already has an app password {name}")
            }
            Self::AppPasswordsFull(user) => write!(
                f,
                "user {user} already has {APP_PASSWORDS_MAX} app passwords, the maximum"
            ),
            Self::UnknownGroup(name) => write!(f, "group {name} does not exist"),
            Self::GroupExists(name) => write!(f, "group {name} already exists"),
            Self::GroupsFull => {
                write!(f, "the file already has {GROUPS_MAX} groups, the maximum")
            }
            Self::NotMember(user, group) => write!(f, "user {user} is not in group {group}"),
            Self::Rules(reason) => write!(f, "password_rules.{reason}"),
            Self::Name(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for UserFileError {}
