//! Errors of the user's files and of logins.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

use smbeam_client::{Url, UrlError};

/// The reason why a location or a login cannot be found.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A text is not a location on a server.
    Location {
        /// The text, without a password.
        text: String,
        /// The fault of the URL.
        error: UrlError,
    },
    /// The file of credentials or of remotes cannot be read, or its content or its permissions are
    /// not accepted.
    File {
        /// The file.
        path: PathBuf,
        /// The reason, with the line if it is known.
        reason: String,
    },
    /// The file with a password cannot be read.
    PasswordFile {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// The command that prints a password cannot run, or its output is not a password.
    Command {
        /// The command.
        command: String,
        /// The error of the system.
        error: io::Error,
    },
    /// The command that prints a password fails.
    CommandFailed {
        /// The command.
        command: String,
        /// Its exit status.
        status: ExitStatus,
    },
    /// Neither the URL nor another source names a user.
    NoUser {
        /// The name or the address of the server.
        host: String,
    },
}

impl Error {
    pub(crate) fn location(text: &str, error: UrlError) -> Self {
        let text = Url::without_password(text).into_owned();
        Self::Location { text, error }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Location { text, error } => write!(f, "{}: {error}", text.escape_debug()),
            Self::File { path, reason } => write!(f, "{}: {reason}", path.display()),
            Self::PasswordFile { path, error } => {
                write!(f, "cannot read the password: {}: {error}", path.display())
            }
            Self::Command { command, error } => {
                write!(f, "password_command: cannot run `{command}`: {error}")
            }
            Self::CommandFailed { command, status } => {
                write!(
                    f,
                    "password_command: the command fails ({status}): {command}"
                )
            }
            Self::NoUser { host } => write!(
                f,
                "no user name for {host}: use smb://user@host, the option `user`, or `anonymous`"
            ),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Location { error, .. } => Some(error),
            Self::PasswordFile { error, .. } | Self::Command { error, .. } => Some(error),
            Self::File { .. } | Self::CommandFailed { .. } | Self::NoUser { .. } => None,
        }
    }
}
