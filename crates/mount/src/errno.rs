//! The only table from errors of the client library to errno values.

use fuser::Errno;
use smbeam_client::{Error, Status};

/// The reply to an operation of the kernel.
pub(crate) type Answer<T> = Result<T, Errno>;

/// Returns the errno value with which a request of the kernel fails.
pub(crate) fn errno(error: &Error) -> Errno {
    match error {
        Error::InvalidName(_, why) if why.contains("long") => Errno::ENAMETOOLONG,
        Error::InvalidName(..) | Error::InvalidUrl { .. } => Errno::EINVAL,
        Error::Status { status, .. } => of_status(*status),
        Error::TimedOut { .. } => Errno::ETIMEDOUT,
        Error::Canceled { .. } => Errno::EINTR,
        Error::Unsupported { .. } => Errno::EOPNOTSUPP,
        Error::Resolve(..)
        | Error::Connect(..)
        | Error::NotSmb(..)
        | Error::Unreachable { .. }
        | Error::Refused { .. }
        | Error::Certificate { .. } => Errno::EHOSTUNREACH,
        Error::Login { .. } | Error::Untrusted { .. } => Errno::EACCES,
        // A violation of the protocol, a lost connection after its time limit, and local errors.
        _ => Errno::EIO,
    }
}

/// Returns the errno value for a status of the server. The values are those of the Linux kernel
/// client where it has one for the status (fs/smb/client/smb2maperror.c).
fn of_status(status: Status) -> Errno {
    match status {
        Status::OBJECT_NAME_NOT_FOUND
        | Status::OBJECT_PATH_NOT_FOUND
        | Status::NO_SUCH_FILE
        | Status::OBJECT_PATH_SYNTAX_BAD
        | Status::DELETE_PENDING
        | Status::BAD_NETWORK_NAME => Errno::ENOENT,
        Status::OBJECT_NAME_COLLISION => Errno::EEXIST,
        Status::ACCESS_DENIED | Status::CANNOT_DELETE | Status::LOGON_FAILURE => Errno::EACCES,
        Status::PRIVILEGE_NOT_HELD | Status::INVALID_OWNER => Errno::EPERM,
        Status::MEDIA_WRITE_PROTECTED => Errno::EROFS,
        Status::SHARING_VIOLATION => Errno::EBUSY,
        Status::FILE_LOCK_CONFLICT | Status::LOCK_NOT_GRANTED => Errno::EAGAIN,
        Status::RANGE_NOT_LOCKED => Errno::ENOLCK,
        Status::DIRECTORY_NOT_EMPTY => Errno::ENOTEMPTY,
        Status::FILE_IS_A_DIRECTORY => Errno::EISDIR,
        Status::NOT_A_DIRECTORY => Errno::ENOTDIR,
        Status::DISK_FULL => Errno::ENOSPC,
        Status::NOT_SAME_DEVICE => Errno::EXDEV,
        Status::OBJECT_NAME_INVALID | Status::INVALID_PARAMETER => Errno::EINVAL,
        Status::NAME_TOO_LONG => Errno::ENAMETOOLONG,
        Status::TOO_MANY_LINKS => Errno::EMLINK,
        Status::EA_TOO_LARGE => Errno::ENOSPC,
        Status::INSUFFICIENT_RESOURCES | Status::NO_MEMORY => Errno::ENOMEM,
        Status::TOO_MANY_OPENED_FILES => Errno::EMFILE,
        Status::FILE_CLOSED | Status::INVALID_HANDLE => Errno::EBADF,
        Status::STOPPED_ON_SYMLINK => Errno::ELOOP,
        Status::NOT_SUPPORTED
        | Status::NOT_IMPLEMENTED
        | Status::INVALID_DEVICE_REQUEST
        | Status::EAS_NOT_SUPPORTED => Errno::EOPNOTSUPP,
        _ => Errno::EIO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(status: Status) -> Errno {
        let path = "p".to_owned();
        errno(&Error::Status {
            operation: "open",
            path,
            status,
        })
    }

    #[test]
    fn each_kind_of_refusal_has_its_errno() {
        assert_eq!(of(Status::OBJECT_NAME_NOT_FOUND), Errno::ENOENT);
        assert_eq!(of(Status::DIRECTORY_NOT_EMPTY), Errno::ENOTEMPTY);
        assert_eq!(of(Status::LOCK_NOT_GRANTED), Errno::EAGAIN);
        assert_eq!(of(Status(0xC000_FFFF)), Errno::EIO);
    }

    #[test]
    fn a_name_that_no_server_has_is_no_error_of_the_server() {
        let long = Error::InvalidName(String::new(), "a component is longer than 255 characters");
        assert_eq!(errno(&long), Errno::ENAMETOOLONG);
        let dots = Error::InvalidName(String::new(), "`..` is not allowed");
        assert_eq!(errno(&dots), Errno::EINVAL);
    }
}
