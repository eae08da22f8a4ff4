//! The exit codes, and the descriptions of the status codes of servers.

use std::io;
use std::process::ExitCode;

use auth::UserFileError;
use smbeam_server::config::ConfigError;
use smbeam_server::{Reason as _, RefusedConfig, StartError};
use wire::Status;

/// The exit codes. docs/cli.md documents them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Exit {
    /// Everything succeeded.
    Success = 0,
    /// A part failed, or a failure has no other code.
    Failed = 1,
    /// Invalid arguments, or an invalid file that the command line names.
    Usage = 2,
    /// The server cannot be found, reached or trusted.
    Unreachable = 3,
    /// The server refused the login.
    LoginRefused = 4,
    /// No such file, directory or share.
    NotFound = 5,
    /// Permission denied.
    Denied = 6,
    /// No space left, on the server or on this machine.
    Full = 7,
    /// Another client has the file open or locked.
    InUse = 8,
    /// The connection was lost.
    Lost = 9,
    /// The name exists already, or the directory is not empty.
    Exists = 10,
    /// Invalid file name.
    BadName = 11,
    /// Source and target differ, or the source changed during the copy.
    Differs = 12,
    /// More removals are necessary than `--max-delete` allows.
    TooManyRemovals = 13,
    /// Interrupted by Ctrl-C or SIGTERM.
    Interrupted = 130,
}

impl Exit {
    /// All codes, with their meanings.
    const ALL: [(Self, &str); 15] = [
        (Self::Success, "Everything succeeded."),
        (
            Self::Failed,
            "A part failed, or the failure has no other code.",
        ),
        (
            Self::Usage,
            "Invalid arguments, or an invalid file that the command line names.",
        ),
        (
            Self::Unreachable,
            "The server cannot be found, reached or trusted, or does not speak SMB.",
        ),
        (Self::LoginRefused, "The server refused the login."),
        (Self::NotFound, "No such file, directory, share or user."),
        (Self::Denied, "Permission denied."),
        (Self::Full, "No space left, on the server or this machine."),
        (
            Self::InUse,
            "Another client has the file open or locked, or the address is in use.",
        ),
        (Self::Lost, "The connection was lost."),
        (
            Self::Exists,
            "The name exists already, or the directory is not empty.",
        ),
        (Self::BadName, "Invalid file name."),
        (
            Self::Differs,
            "Source and target differ, or the source changed during the copy.",
        ),
        (
            Self::TooManyRemovals,
            "sync stopped, because --max-delete allows no more removals.",
        ),
        (Self::Interrupted, "Interrupted by Ctrl-C or SIGTERM."),
    ];

    /// The codes as a section of a help text.
    pub(crate) fn help() -> String {
        let rows = Self::ALL.map(|(exit, meaning)| format!("  {:>3}  {meaning}", exit as u8));
        format!("Exit codes of all commands:\n{}", rows.join("\n"))
    }

    /// The codes as a section of a manual page. man(7)
    pub(crate) fn manual() -> String {
        let rows = Self::ALL.map(|(exit, meaning)| format!(".TP\n{}\n{meaning}\n", exit as u8));
        format!(".SH \"EXIT STATUS\"\n{}", rows.concat())
    }

    /// The exit code for an error of a command that runs or manages a server.
    pub(crate) fn of_server(error: &anyhow::Error) -> Self {
        error.chain().find_map(of_cause).unwrap_or(Self::Failed)
    }
}

/// The reason code of an error that prevents the start of a server, or a change of its
/// configuration.
pub(crate) fn code_of(error: &anyhow::Error) -> &'static str {
    let of_cause = |error: &(dyn std::error::Error + 'static)| {
        let of_users = || {
            let users = error.downcast_ref::<UserFileError>();
            users.map(|_| RefusedConfig::Users.code())
        };
        let start = error.downcast_ref::<StartError>();
        start.map(StartError::code).or_else(of_users)
    };
    let code = error.chain().find_map(of_cause);
    code.unwrap_or_else(|| RefusedConfig::Invalid.code())
}

fn of_cause(error: &(dyn std::error::Error + 'static)) -> Option<Exit> {
    if let Some(error) = error.downcast_ref::<ConfigError>() {
        return Some(
            error
                .unread()
                .map_or(Exit::Usage, |kind| exit_of_io(&kind.into())),
        );
    }
    if let Some(error) = error.downcast_ref::<UserFileError>() {
        return Some(of_user_file(error));
    }
    if let Some(error) = error.downcast_ref::<StartError>() {
        return Some(of_start(error));
    }
    error.downcast_ref::<io::Error>().map(exit_of_io)
}

fn of_user_file(error: &UserFileError) -> Exit {
    match error {
        UserFileError::Io(_, error) => exit_of_io(error),
        UserFileError::Unknown(_) => Exit::NotFound,
        UserFileError::Exists(_) => Exit::Exists,
        UserFileError::Full => Exit::Full,
        _ => Exit::Usage,
    }
}

fn of_start(error: &StartError) -> Exit {
    match error {
        StartError::Share { error, .. }
        | StartError::Listen { error, .. }
        | StartError::Metrics { error, .. }
        | StartError::Audit { error, .. } => exit_of_io(error),
        StartError::Account { .. } | StartError::SidMap(_) | StartError::Certificate(_) => {
            Exit::Usage
        }
        StartError::Users(error) => of_user_file(error),
        StartError::Rdma(_) | StartError::Quic(_) | StartError::Ring(_) | StartError::Thread(_) => {
            Exit::Failed
        }
    }
}

pub(crate) fn exit_of_io(error: &io::Error) -> Exit {
    match error.kind() {
        io::ErrorKind::NotFound => Exit::NotFound,
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Exit::Denied,
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Exit::Full,
        io::ErrorKind::ResourceBusy
        | io::ErrorKind::ExecutableFileBusy
        | io::ErrorKind::AddrInUse => Exit::InUse,
        io::ErrorKind::AlreadyExists | io::ErrorKind::DirectoryNotEmpty => Exit::Exists,
        io::ErrorKind::InvalidFilename => Exit::BadName,
        _ => Exit::Failed,
    }
}

/// The exit code for a status from a server.
pub(crate) fn exit_of_status(status: Status) -> Exit {
    match status {
        Status::OBJECT_NAME_NOT_FOUND
        | Status::OBJECT_PATH_NOT_FOUND
        | Status::NO_SUCH_FILE
        | Status::NOT_FOUND
        | Status::BAD_NETWORK_NAME
        | Status::FILE_DELETED
        | Status::NO_SUCH_DEVICE => Exit::NotFound,
        Status::ACCESS_DENIED
        | Status::NETWORK_ACCESS_DENIED
        | Status::PRIVILEGE_NOT_HELD
        | Status::MEDIA_WRITE_PROTECTED
        | Status::CANNOT_DELETE
        | Status::INVALID_OWNER => Exit::Denied,
        Status::DISK_FULL => Exit::Full,
        Status::SHARING_VIOLATION
        | Status::FILE_LOCK_CONFLICT
        | Status::LOCK_NOT_GRANTED
        | Status::DELETE_PENDING
        | Status::OPLOCK_NOT_GRANTED => Exit::InUse,
        Status::OBJECT_NAME_COLLISION | Status::DIRECTORY_NOT_EMPTY => Exit::Exists,
        Status::OBJECT_NAME_INVALID
        | Status::OBJECT_PATH_INVALID
        | Status::OBJECT_PATH_SYNTAX_BAD
        | Status::NAME_TOO_LONG => Exit::BadName,
        Status::LOGON_FAILURE
        | Status::WRONG_PASSWORD
        | Status::NO_SUCH_USER
        | Status::ACCOUNT_RESTRICTION
        | Status::INVALID_LOGON_HOURS
        | Status::INVALID_WORKSTATION
        | Status::PASSWORD_EXPIRED
        | Status::PASSWORD_MUST_CHANGE
        | Status::ACCOUNT_EXPIRED
        | Status::ACCOUNT_LOCKED_OUT
        | Status::ACCOUNT_DISABLED
        | Status::LOGON_TYPE_NOT_GRANTED => Exit::LoginRefused,
        Status::NETWORK_NAME_DELETED
        | Status::USER_SESSION_DELETED
        | Status::NETWORK_SESSION_EXPIRED
        | Status::VOLUME_DISMOUNTED => Exit::Lost,
        _ => Exit::Failed,
    }
}

/// Describes a status by words and by its name in \[MS-ERREF\].
pub(crate) fn describe_status(status: Status) -> String {
    let Some(name) = status.name() else {
        return format!("the server returned status {:#010x}", status.0);
    };
    let words = match status {
        Status::BAD_NETWORK_NAME => "no such share".into(),
        Status::DISK_FULL => "the disk is full".into(),
        Status::SHARING_VIOLATION => "another client has the file open".into(),
        Status::LOGON_FAILURE => "wrong user name or password".into(),
        Status::PASSWORD_EXPIRED => "the password has expired and must be changed".into(),
        Status::PASSWORD_MUST_CHANGE => "the password must be changed before the login".into(),
        _ => name.replace('_', " ").to_lowercase(),
    };
    format!(
        "{}{} (STATUS_{name})",
        words[..1].to_uppercase(),
        &words[1..]
    )
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use smbeam_server::config::Config;

    use super::*;

    #[test]
    fn errors_of_a_server_have_the_codes_of_a_client() {
        let code = |error: anyhow::Error| Exit::of_server(&error.context("users.toml"));
        let load = |path: &str| Config::load(Path::new(path)).expect_err("no such file");
        assert_eq!(code(load("/nosuch/smbeam.toml").into()), Exit::NotFound);
        let bad = Config::parse(Path::new("smbeam.toml"), "x = 1").expect_err("a bad file");
        assert_eq!(code(bad.into()), Exit::Usage);
        assert_eq!(
            code(UserFileError::Unknown("zoe".into()).into()),
            Exit::NotFound
        );
        assert_eq!(
            code(UserFileError::Exists("zoe".into()).into()),
            Exit::Exists
        );
        let used = StartError::Listen {
            address: ([127, 0, 0, 1], 445).into(),
            transport: net::Transport::Tcp,
            error: io::ErrorKind::AddrInUse.into(),
        };
        assert_eq!(code(used.into()), Exit::InUse);
        assert_eq!(code(anyhow::anyhow!("no reason")), Exit::Failed);
    }

    #[test]
    fn the_documentation_has_every_code() {
        let page = include_str!("../../../docs/cli.md");
        for (exit, _) in Exit::ALL {
            let code = exit as u8;
            assert!(
                page.contains(&format!("\n| {code} | ")),
                "{code} is not in cli.md"
            );
            assert!(Exit::help().contains(&format!(" {code}  ")), "{code}");
        }
        assert!(Exit::manual().contains("\n.TP\n130\nInterrupted"));
    }

    #[test]
    fn a_status_has_words_and_a_name() {
        assert_eq!(
            describe_status(Status::OBJECT_NAME_NOT_FOUND),
            "Object name not found (STATUS_OBJECT_NAME_NOT_FOUND)"
        );
        assert_eq!(
            describe_status(Status::BAD_NETWORK_NAME),
            "No such share (STATUS_BAD_NETWORK_NAME)"
        );
        assert_eq!(
            describe_status(Status(0xC123_4567)),
            "the server returned status 0xc1234567"
        );
        assert_eq!(exit_of_status(Status::DISK_FULL), Exit::Full);
    }
}
