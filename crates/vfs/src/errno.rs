//! The only table from errno values to NTSTATUS values.
//!
//! An errno value maps to the same status for all operations, unless the context requires another
//! one.

use rustix::io::Errno;
use wire::Status;

/// The kind of operation that the kernel refused. Where an errno value has several NTSTATUS
/// counterparts, the kind selects one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// Resolution of the directories of a path.
    Walk,
    /// Open, creation or query of the file that a path names.
    Open,
    /// Removal of a name from a directory (unlink, rmdir).
    Remove,
    /// Rename of a file, or creation of a hard link.
    Rename,
    /// Read, write, flush or truncation.
    Data,
    /// Change of attributes, times or permissions.
    Attributes,
}

/// Returns the NTSTATUS that a client receives when the kernel refuses an operation with this errno
/// value. `context` is the kind of the operation. An errno value without a counterpart becomes
/// UNSUCCESSFUL.
pub fn status(errno: Errno, context: Context) -> Status {
    special(errno, context).unwrap_or_else(|| general(errno))
}

/// The status for an errno value with a special meaning in the context; `None` for the others.
fn special(errno: Errno, context: Context) -> Option<Status> {
    use Context::{Attributes, Data, Open, Remove, Rename, Walk};
    let status = match (context, errno) {
        // A directory of the path is missing, is a file, is a loop of links, or is outside the
        // share: for the client the path does not exist.
        (Walk, Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => {
            Status::OBJECT_PATH_NOT_FOUND
        }
        (Rename, Errno::NOENT | Errno::NOTDIR) => Status::OBJECT_PATH_NOT_FOUND,
        // A link with a target outside the share has no target.
        (Open, Errno::XDEV | Errno::LOOP) => Status::OBJECT_NAME_NOT_FOUND,
        // A FIFO or socket without a peer, or a device without a driver.
        (Open, Errno::NXIO | Errno::NODEV) => Status::ACCESS_DENIED,
        (Open, Errno::NOTDIR) => Status::NOT_A_DIRECTORY,
        (Remove, Errno::BUSY) => Status::SHARING_VIOLATION,
        (Remove, Errno::ISDIR) => Status::FILE_IS_A_DIRECTORY,
        (Remove, Errno::NOTDIR) => Status::NOT_A_DIRECTORY,
        // [MS-FSA] 2.1.5.15.11: a rename does not replace a directory.
        (Rename, Errno::ISDIR | Errno::NOTEMPTY) => Status::ACCESS_DENIED,
        (Rename, Errno::EXIST) => Status::OBJECT_NAME_COLLISION,
        (Rename, Errno::BUSY) => Status::SHARING_VIOLATION,
        // The access mode of the descriptor does not permit the operation.
        (Data | Attributes, Errno::BADF) => Status::ACCESS_DENIED,
        (Data, Errno::INVAL | Errno::OVERFLOW) => Status::INVALID_PARAMETER,
        (Data, Errno::NXIO) => Status::INVALID_PARAMETER,
        (Data, Errno::ISDIR | Errno::SPIPE) => Status::INVALID_DEVICE_REQUEST,
        _ => return None,
    };
    Some(status)
}

/// The status for an errno value in any context.
fn general(errno: Errno) -> Status {
    match errno {
        Errno::PERM | Errno::ACCESS => Status::ACCESS_DENIED,
        Errno::NOENT => Status::OBJECT_NAME_NOT_FOUND,
        Errno::EXIST => Status::OBJECT_NAME_COLLISION,
        Errno::NOTDIR => Status::OBJECT_PATH_NOT_FOUND,
        Errno::ISDIR => Status::FILE_IS_A_DIRECTORY,
        Errno::NOTEMPTY => Status::DIRECTORY_NOT_EMPTY,
        Errno::NAMETOOLONG | Errno::ILSEQ => Status::OBJECT_NAME_INVALID,
        Errno::LOOP => Status::OBJECT_PATH_NOT_FOUND,
        Errno::NOSPC | Errno::DQUOT | Errno::FBIG => Status::DISK_FULL,
        Errno::ROFS => Status::MEDIA_WRITE_PROTECTED,
        Errno::MFILE | Errno::NFILE => Status::TOO_MANY_OPENED_FILES,
        Errno::NOMEM | Errno::NOBUFS => Status::INSUFFICIENT_RESOURCES,
        Errno::MLINK => Status::TOO_MANY_LINKS,
        Errno::XDEV => Status::NOT_SAME_DEVICE,
        Errno::BUSY | Errno::TXTBSY => Status::SHARING_VIOLATION,
        Errno::INVAL | Errno::FAULT | Errno::OVERFLOW => Status::INVALID_PARAMETER,
        Errno::BADF => Status::INVALID_HANDLE,
        Errno::NOSYS | Errno::OPNOTSUPP => Status::NOT_SUPPORTED,
        Errno::IO => Status::IO_DEVICE_ERROR,
        Errno::NODEV | Errno::NXIO => Status::NO_SUCH_DEVICE,
        Errno::STALE => Status::FILE_CLOSED,
        Errno::TIMEDOUT => Status::IO_TIMEOUT,
        Errno::CANCELED | Errno::INTR => Status::CANCELLED,
        _ => Status::UNSUCCESSFUL,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_directory_differs_from_a_missing_file() {
        assert_eq!(
            status(Errno::NOENT, Context::Walk),
            Status::OBJECT_PATH_NOT_FOUND
        );
        assert_eq!(
            status(Errno::NOENT, Context::Open),
            Status::OBJECT_NAME_NOT_FOUND
        );
        assert_eq!(
            status(Errno::NOTDIR, Context::Walk),
            Status::OBJECT_PATH_NOT_FOUND
        );
        assert_eq!(
            status(Errno::NOTDIR, Context::Open),
            Status::NOT_A_DIRECTORY
        );
    }

    #[test]
    fn a_path_out_of_the_share_does_not_exist() {
        assert_eq!(
            status(Errno::XDEV, Context::Walk),
            Status::OBJECT_PATH_NOT_FOUND
        );
        assert_eq!(
            status(Errno::XDEV, Context::Open),
            Status::OBJECT_NAME_NOT_FOUND
        );
        assert_eq!(
            status(Errno::XDEV, Context::Rename),
            Status::NOT_SAME_DEVICE
        );
    }

    #[test]
    fn a_full_disk_and_an_exceeded_quota_are_disk_full() {
        for context in [
            Context::Open,
            Context::Rename,
            Context::Data,
            Context::Attributes,
        ] {
            assert_eq!(status(Errno::NOSPC, context), Status::DISK_FULL);
            assert_eq!(status(Errno::DQUOT, context), Status::DISK_FULL);
        }
    }

    #[test]
    fn a_name_that_is_taken_collides() {
        assert_eq!(
            status(Errno::EXIST, Context::Rename),
            Status::OBJECT_NAME_COLLISION
        );
        assert_eq!(
            status(Errno::EXIST, Context::Open),
            Status::OBJECT_NAME_COLLISION
        );
        assert_eq!(
            status(Errno::NOTEMPTY, Context::Remove),
            Status::DIRECTORY_NOT_EMPTY
        );
        assert_eq!(
            status(Errno::NOTEMPTY, Context::Rename),
            Status::ACCESS_DENIED
        );
    }

    #[test]
    fn no_error_is_a_success() {
        for raw in 1..134 {
            let errno = Errno::from_raw_os_error(raw);
            for context in [Context::Walk, Context::Open, Context::Remove, Context::Data] {
                assert!(
                    status(errno, context).is_error(),
                    "{errno:?} in {context:?}"
                );
            }
        }
    }
}
