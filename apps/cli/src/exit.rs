//! How a command ends: what it says went wrong, and the code that scripts read.

use std::io;
use std::process::ExitCode;

use wire::Status;

/// The exit codes. docs/cli.md has the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Exit {
    /// All is done.
    Success = 0,
    /// Some of it is not, or failed for a reason that has no code of its own.
    Failed = 1,
    /// The command line or a file of ours is wrong.
    Usage = 2,
    /// The server cannot be found or reached, or speaks something else.
    Unreachable = 3,
    /// The login was refused.
    LoginRefused = 4,
    /// No such file, directory or share.
    NotFound = 5,
    /// Not allowed.
    Denied = 6,
    /// No room.
    Full = 7,
    /// Somebody else has it open or locked.
    InUse = 8,
    /// The connection ended in the middle.
    Lost = 9,
    /// There is something already, or still.
    Exists = 10,
    /// A name that cannot be.
    BadName = 11,
    /// The two sides differ where they must not.
    Differs = 12,
    /// Ctrl-C.
    Interrupted = 130,
}

pub(crate) fn exit_of_io(error: &io::Error) -> Exit {
    match error.kind() {
        io::ErrorKind::NotFound => Exit::NotFound,
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Exit::Denied,
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Exit::Full,
        io::ErrorKind::ResourceBusy | io::ErrorKind::ExecutableFileBusy => Exit::InUse,
        io::ErrorKind::AlreadyExists | io::ErrorKind::DirectoryNotEmpty => Exit::Exists,
        io::ErrorKind::InvalidFilename => Exit::BadName,
        _ => Exit::Failed,
    }
}

/// The code for what a server says.
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

/// What a status says, in words and by its name.
pub(crate) fn describe_status(status: Status) -> String {
    let Some(name) = status.name() else {
        return format!("the server says {:#010x}", status.0);
    };
    let words = match status {
        Status::BAD_NETWORK_NAME => "no such share".into(),
        Status::DISK_FULL => "the disk is full".into(),
        Status::SHARING_VIOLATION => "somebody else has it open".into(),
        Status::LOGON_FAILURE => "user or password are wrong".into(),
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
    use super::*;

    #[test]
    fn statuses_are_told_by_word_and_name() {
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
            "the server says 0xc1234567"
        );
        assert_eq!(exit_of_status(Status::DISK_FULL), Exit::Full);
    }
}
