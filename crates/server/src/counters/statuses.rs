//! The statuses that have counters.
//!
//! A status comes from the server, so a client cannot make up new ones. A fixed list bounds the
//! number of counters and of labels all the same. All other statuses share two counters.

use wire::Status;

/// The statuses with their own counters. The most frequent ones come first.
const LISTED: [Status; 58] = [
    Status::SUCCESS,
    Status::MORE_PROCESSING_REQUIRED,
    Status::OBJECT_NAME_NOT_FOUND,
    Status::NO_MORE_FILES,
    Status::END_OF_FILE,
    Status::ACCESS_DENIED,
    Status::OBJECT_PATH_NOT_FOUND,
    Status::OBJECT_NAME_COLLISION,
    Status::SHARING_VIOLATION,
    Status::NO_SUCH_FILE,
    Status::BUFFER_OVERFLOW,
    Status::NOT_SUPPORTED,
    Status::INVALID_PARAMETER,
    Status::CANCELLED,
    Status::NOTIFY_ENUM_DIR,
    Status::NOTIFY_CLEANUP,
    Status::FILE_CLOSED,
    Status::FILE_LOCK_CONFLICT,
    Status::LOCK_NOT_GRANTED,
    Status::RANGE_NOT_LOCKED,
    Status::FILE_IS_A_DIRECTORY,
    Status::NOT_A_DIRECTORY,
    Status::DIRECTORY_NOT_EMPTY,
    Status::OBJECT_NAME_INVALID,
    Status::OBJECT_PATH_SYNTAX_BAD,
    Status::DELETE_PENDING,
    Status::CANNOT_DELETE,
    Status::STOPPED_ON_SYMLINK,
    Status::NOT_A_REPARSE_POINT,
    Status::INVALID_DEVICE_REQUEST,
    Status::INVALID_INFO_CLASS,
    Status::INFO_LENGTH_MISMATCH,
    Status::BUFFER_TOO_SMALL,
    Status::NO_EAS_ON_FILE,
    Status::NOT_FOUND,
    Status::OPLOCK_NOT_GRANTED,
    Status::LOGON_FAILURE,
    Status::ACCOUNT_DISABLED,
    Status::ACCOUNT_LOCKED_OUT,
    Status::REQUEST_NOT_ACCEPTED,
    Status::USER_SESSION_DELETED,
    Status::NETWORK_SESSION_EXPIRED,
    Status::NETWORK_NAME_DELETED,
    Status::BAD_NETWORK_NAME,
    Status::FILE_NOT_AVAILABLE,
    Status::DISK_FULL,
    Status::MEDIA_WRITE_PROTECTED,
    Status::INSUFFICIENT_RESOURCES,
    Status::TOO_MANY_OPENED_FILES,
    Status::IO_DEVICE_ERROR,
    Status::IO_TIMEOUT,
    Status::PRIVILEGE_NOT_HELD,
    Status::INVALID_OWNER,
    Status::NONE_MAPPED,
    Status::SOME_NOT_MAPPED,
    Status::PIPE_DISCONNECTED,
    Status::NOT_SAME_DEVICE,
    Status::DUPLICATE_OBJECTID,
];

/// Number of counters: one for each listed status, one for the other errors, one for the rest.
pub(crate) const SLOTS: usize = LISTED.len() + 2;
/// Slot of the errors that are not listed.
const OTHER_ERROR: usize = LISTED.len();
/// Slot of the other statuses.
const OTHER: usize = LISTED.len() + 1;

/// The slot of a status.
pub(crate) fn slot(status: Status) -> usize {
    let listed = LISTED.iter().position(|listed| *listed == status);
    let other = || {
        if status.is_error() {
            OTHER_ERROR
        } else {
            OTHER
        }
    };
    listed.unwrap_or_else(other)
}

/// The label of a slot: the name of the status in the specification.
pub(crate) fn label(slot: usize) -> &'static str {
    match slot {
        OTHER_ERROR => "other_error",
        OTHER => "other",
        slot => LISTED[slot].name().unwrap_or_default(),
    }
}

/// Whether the responses of a slot are errors for the totals of the server: not those of a login
/// that continues.
pub(crate) fn is_error(slot: usize) -> bool {
    match LISTED.get(slot) {
        Some(status) => status.is_error() && *status != Status::MORE_PROCESSING_REQUIRED,
        None => slot == OTHER_ERROR,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_slot_has_a_name() {
        let labels: BTreeSet<&str> = (0..SLOTS).map(label).collect();
        assert_eq!(labels.len(), SLOTS);
        assert!(!labels.contains(""));
    }

    #[test]
    fn statuses_have_a_slot() {
        assert_eq!(slot(Status::SUCCESS), 0);
        assert_eq!(label(slot(Status::DISK_FULL)), "DISK_FULL");
        assert_eq!(label(slot(Status(0xC000_FFFF))), "other_error");
        assert_eq!(label(slot(Status(0x0000_0FFF))), "other");
        let errors = [
            Status::MORE_PROCESSING_REQUIRED,
            Status::SUCCESS,
            Status::NO_MORE_FILES,
            Status::DISK_FULL,
            Status(0xC000_FFFF),
        ];
        let errors = errors.map(|status| is_error(slot(status)));
        assert_eq!(errors, [false, false, false, true, true]);
    }
}
