//! The errno values of errors, for programs with an interface like that of the system.

use libc::c_int;
use wire::Status;

use crate::error::Error;

impl Error {
    /// Returns the errno value with which a system call fails for the same reason. Values for a
    /// status of the server are those of the Linux kernel client where it has one for the status
    /// (fs/smb/client/smb2maperror.c). `EIO` stands for every error without a value of its own: a
    /// violation of the protocol, a connection that is lost.
    pub fn errno(&self) -> i32 {
        match self {
            Self::InvalidName(_, why) if why.contains("long") => libc::ENAMETOOLONG,
            Self::InvalidName(..) | Self::InvalidUrl { .. } => libc::EINVAL,
            Self::Status { status, .. } => of_status(*status),
            Self::TimedOut { .. } => libc::ETIMEDOUT,
            Self::Canceled { .. } => libc::EINTR,
            Self::Unsupported { .. } => libc::EOPNOTSUPP,
            Self::Resolve(..)
            | Self::Connect(..)
            | Self::NotSmb(..)
            | Self::Unreachable { .. }
            | Self::Refused { .. }
            | Self::Certificate { .. } => libc::EHOSTUNREACH,
            Self::Login { .. } | Self::Untrusted { .. } => libc::EACCES,
            _ => libc::EIO,
        }
    }
}

fn of_status(status: Status) -> c_int {
    match status {
        Status::OBJECT_NAME_NOT_FOUND
        | Status::OBJECT_PATH_NOT_FOUND
        | Status::NO_SUCH_FILE
        | Status::OBJECT_PATH_SYNTAX_BAD
        | Status::DELETE_PENDING
        | Status::BAD_NETWORK_NAME => libc::ENOENT,
        Status::OBJECT_NAME_COLLISION => libc::EEXIST,
        Status::ACCESS_DENIED | Status::CANNOT_DELETE | Status::LOGON_FAILURE => libc::EACCES,
        Status::PRIVILEGE_NOT_HELD | Status::INVALID_OWNER => libc::EPERM,
        Status::MEDIA_WRITE_PROTECTED => libc::EROFS,
        Status::SHARING_VIOLATION => libc::EBUSY,
        Status::FILE_LOCK_CONFLICT | Status::LOCK_NOT_GRANTED => libc::EAGAIN,
        Status::RANGE_NOT_LOCKED => libc::ENOLCK,
        Status::DIRECTORY_NOT_EMPTY => libc::ENOTEMPTY,
        Status::FILE_IS_A_DIRECTORY => libc::EISDIR,
        Status::NOT_A_DIRECTORY => libc::ENOTDIR,
        Status::DISK_FULL => libc::ENOSPC,
        Status::NOT_SAME_DEVICE => libc::EXDEV,
        Status::OBJECT_NAME_INVALID | Status::INVALID_PARAMETER => libc::EINVAL,
        Status::NAME_TOO_LONG => libc::ENAMETOOLONG,
        Status::TOO_MANY_LINKS => libc::EMLINK,
        Status::EA_TOO_LARGE => libc::ENOSPC,
        Status::INSUFFICIENT_RESOURCES | Status::NO_MEMORY => libc::ENOMEM,
        Status::TOO_MANY_OPENED_FILES => libc::EMFILE,
        Status::FILE_CLOSED | Status::INVALID_HANDLE => libc::EBADF,
        Status::STOPPED_ON_SYMLINK => libc::ELOOP,
        Status::NOT_SUPPORTED
        | Status::NOT_IMPLEMENTED
        | Status::INVALID_DEVICE_REQUEST
        | Status::EAS_NOT_SUPPORTED => libc::EOPNOTSUPP,
        _ => libc::EIO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(status: Status) -> i32 {
        let path = "p".to_owned();
        let error = Error::Status {
            operation: "open",
            path,
            status,
        };
        error.errno()
    }

    #[test]
    fn each_kind_of_refusal_has_its_errno() {
        assert_eq!(of(Status::OBJECT_NAME_NOT_FOUND), libc::ENOENT);
        assert_eq!(of(Status::DIRECTORY_NOT_EMPTY), libc::ENOTEMPTY);
        assert_eq!(of(Status::LOCK_NOT_GRANTED), libc::EAGAIN);
        assert_eq!(of(Status(0xC000_FFFF)), libc::EIO);
    }

    #[test]
    fn a_name_that_no_server_has_is_no_error_of_the_server() {
        let long = Error::InvalidName(String::new(), "a component is longer than 255 characters");
        assert_eq!(long.errno(), libc::ENAMETOOLONG);
        let dots = Error::InvalidName(String::new(), "`..` is not allowed");
        assert_eq!(dots.errno(), libc::EINVAL);
    }
}
