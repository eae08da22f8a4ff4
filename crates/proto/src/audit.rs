//! Audit: what clients do in shares, for administrators.
//!
//! A share selects operations by their outcome ([`Selection`]). The core makes an [`Event`] for
//! each selected one. The driver writes it to the audit log; no client receives it.

use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use wire::access::{AccessMask, CreateDisposition};
use wire::create::CreateAction;
use wire::query_info::SecurityInformation;
use wire::{SessionId, Status};

use crate::login::{Account, AccountKind};
use crate::path::SharePath;
use crate::report::{LoginRefusal, ShareRefusal};

/// A kind of operation that a share can select.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A session enters or leaves a share (TREE_CONNECT, TREE_DISCONNECT).
    Connect,
    /// A CREATE that opens an existing file or directory without a change of it.
    Open,
    /// A CREATE that makes, overwrites or supersedes a file or directory. A failed CREATE counts
    /// here if it would have been permitted to.
    Create,
    /// The end of an open that has read data.
    Read,
    /// The end of an open that has changed data.
    Write,
    /// The end of any open.
    Close,
    /// A new name for a file, a directory or a stream.
    Rename,
    /// A further name for a file (hard link).
    Link,
    /// The removal of a file or directory.
    Delete,
    /// A change of attributes, times, extended attributes or reparse points.
    Attributes,
    /// A change of the size or of the allocated space of a file without a WRITE.
    Resize,
    /// A change of a security descriptor: owner, group or access lists.
    Security,
    /// A change of disk quotas.
    Quota,
}

impl Operation {
    /// All operations.
    pub const ALL: [Self; 13] = [
        Self::Connect,
        Self::Open,
        Self::Create,
        Self::Read,
        Self::Write,
        Self::Close,
        Self::Rename,
        Self::Link,
        Self::Delete,
        Self::Attributes,
        Self::Resize,
        Self::Security,
        Self::Quota,
    ];

    /// Returns the name of the operation, such as `rename`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Open => "open",
            Self::Create => "create",
            Self::Read => "read",
            Self::Write => "write",
            Self::Close => "close",
            Self::Rename => "rename",
            Self::Link => "link",
            Self::Delete => "delete",
            Self::Attributes => "attributes",
            Self::Resize => "resize",
            Self::Security => "security",
            Self::Quota => "quota",
        }
    }
}

/// The outcome of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The operation succeeded.
    Success,
    /// The operation failed for lack of rights: ACCESS_DENIED, PRIVILEGE_NOT_HELD or
    /// MEDIA_WRITE_PROTECTED.
    Denied,
    /// The operation failed for another reason.
    Failed,
}

impl Outcome {
    /// All outcomes.
    pub const ALL: [Self; 3] = [Self::Success, Self::Denied, Self::Failed];

    /// Returns the outcome of an operation with this status.
    pub fn of(status: Status) -> Self {
        match status {
            Status::ACCESS_DENIED | Status::PRIVILEGE_NOT_HELD | Status::MEDIA_WRITE_PROTECTED => {
                Self::Denied
            }
            // The severities success and information. [MS-ERREF] 2.3
            Status(value) if value < 0x8000_0000 => Self::Success,
            _ => Self::Failed,
        }
    }

    /// Returns the name of the outcome: `success`, `denied` or `failed`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Denied => "denied",
            Self::Failed => "failed",
        }
    }
}

/// A set of operations, each with a set of outcomes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Selection(u64);

impl Selection {
    /// The selection of nothing.
    pub const NONE: Self = Self(0);

    /// Returns the selection of one operation with one outcome.
    pub const fn of(operation: Operation, outcome: Outcome) -> Self {
        Self(1 << (operation as u32 * 4 + outcome as u32))
    }

    /// Returns the operations of both selections.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns whether the operation with this outcome is selected.
    pub const fn has(self, operation: Operation, outcome: Outcome) -> bool {
        self.0 & Self::of(operation, outcome).0 != 0
    }

    /// Returns whether the operation is selected with any outcome.
    pub const fn has_any(self, operation: Operation) -> bool {
        self.0 & (0b1111 << (operation as u32 * 4)) != 0
    }

    /// Returns whether nothing is selected.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// The selection of a share. The driver changes it while clients use the share.
#[derive(Debug, Default)]
pub struct Rules(AtomicU64);

impl Rules {
    /// Makes the rules with this selection.
    pub const fn new(selection: Selection) -> Self {
        Self(AtomicU64::new(selection.0))
    }

    /// Returns the selection.
    pub fn selection(&self) -> Selection {
        Selection(self.0.load(Ordering::Relaxed))
    }

    /// Replaces the selection.
    pub fn select(&self, selection: Selection) {
        self.0.store(selection.0, Ordering::Relaxed);
    }
}

/// An operation of a client, for the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The session; `None` for an open that outlived its session, and for a refused login.
    pub session: Option<SessionId>,
    /// Name of the account.
    pub user: String,
    /// Kind of the account.
    pub kind: AccountKind,
    /// Name of the share; `None` for events of sessions. For a TREE_CONNECT to an unknown share,
    /// the name that the client sent.
    pub share: Option<String>,
    /// The file or directory; `None` for events of sessions and shares.
    pub object: Option<Object>,
    /// The operation.
    pub action: Action,
    /// The status that the client receives, or that an operation of the server itself has.
    pub status: Status,
}

/// The file or directory of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// The name.
    pub name: Name,
    /// Whether it is a directory; `None` if that is not known.
    pub is_directory: Option<bool>,
    /// The persistent half of the FileId of the open; `None` if the open failed.
    pub open: Option<u64>,
}

/// A name from the root of a share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Name {
    /// A path.
    Path(SharePath),
    /// The UTF-16LE bytes of a name that is not a path of a share, as the client sent it.
    Raw(Vec<u8>),
}

/// An operation of a client with its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// A user logs in, logs in again, or uses a further connection for a session.
    LogIn {
        /// The reason of a refusal.
        refusal: Option<LoginRefusal>,
    },
    /// A session ends.
    LogOff,
    /// A session enters a share.
    Connect {
        /// The reason of a refusal.
        refusal: Option<ShareRefusal>,
    },
    /// A session leaves a share.
    Disconnect,
    /// A CREATE.
    Open(Opening),
    /// The end of an open.
    Close(Closing),
    /// A new name.
    Rename {
        /// The new name.
        to: Name,
        /// Whether the operation replaces a file of this name.
        replaces: bool,
    },
    /// A further name.
    Link {
        /// The further name.
        to: Name,
        /// Whether the operation replaces a file of this name.
        replaces: bool,
    },
    /// The removal of the name with the last close. A refused request to delete is an event, too.
    Delete,
    /// A change of attributes.
    Attributes(Attributes),
    /// A change of the size in bytes.
    Resize {
        /// The new size, or the new allocated space, in bytes.
        bytes: u64,
    },
    /// A change of these parts of the security descriptor.
    Security(SecurityInformation),
    /// A change of disk quotas.
    Quota,
}

/// The kind of attributes that a client changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attributes {
    /// DOS attributes and times.
    Basic,
    /// Extended attributes.
    Extended,
    /// A reparse point, such as a symbolic link.
    Reparse,
}

/// The parameters of a CREATE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    /// The requested rights.
    pub requested: AccessMask,
    /// The granted rights; `None` if the CREATE failed.
    pub granted: Option<AccessMask>,
    /// The disposition.
    pub disposition: CreateDisposition,
    /// Whether the file is deleted with its last close (FILE_DELETE_ON_CLOSE).
    pub deletes_on_close: bool,
    /// What the server did; `None` if the CREATE failed.
    pub result: Option<CreateAction>,
}

/// The use of an open, at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closing {
    /// The rights that the open had.
    pub granted: AccessMask,
    /// Bytes that were read through the open.
    pub read: u64,
    /// Bytes that were written through the open.
    pub written: u64,
    /// Whether data were changed through the open, also without written bytes.
    pub is_modified: bool,
}

impl Event {
    /// Makes an event of an account. Its status is SUCCESS.
    pub(crate) fn new(session: Option<SessionId>, account: &Account, action: Action) -> Self {
        Self {
            session,
            user: account.name.clone(),
            kind: account.kind,
            share: None,
            object: None,
            action,
            status: Status::SUCCESS,
        }
    }

    /// Returns the outcome of the operation.
    pub fn outcome(&self) -> Outcome {
        Outcome::of(self.status)
    }

    /// Returns whether a share selects the event. Shares do not select events of sessions.
    pub fn is_selected(&self, selection: Selection) -> bool {
        let has = |operation| selection.has(operation, self.outcome());
        match &self.action {
            Action::LogIn { .. } | Action::LogOff => false,
            Action::Connect { .. } | Action::Disconnect => has(Operation::Connect),
            Action::Open(opening) => has(opening.operation()),
            Action::Close(closing) => {
                has(Operation::Close)
                    || closing.read > 0 && has(Operation::Read)
                    || closing.has_written() && has(Operation::Write)
            }
            Action::Rename { .. } => has(Operation::Rename),
            Action::Link { .. } => has(Operation::Link),
            Action::Delete => has(Operation::Delete),
            Action::Attributes(_) => has(Operation::Attributes),
            Action::Resize { .. } => has(Operation::Resize),
            Action::Security(_) => has(Operation::Security),
            Action::Quota => has(Operation::Quota),
        }
    }
}

impl Opening {
    /// Returns the operation: [`Operation::Open`] or [`Operation::Create`].
    pub fn operation(&self) -> Operation {
        match (self.result, self.disposition) {
            (Some(CreateAction::OPENED), _) | (None, CreateDisposition::OPEN) => Operation::Open,
            _ => Operation::Create,
        }
    }
}

impl Closing {
    fn has_written(&self) -> bool {
        self.written > 0 || self.is_modified
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_operation_has_its_own_bits() {
        let mut all = Selection::NONE;
        for operation in Operation::ALL {
            for outcome in Outcome::ALL {
                assert!(!all.has(operation, outcome), "{operation:?} {outcome:?}");
                let one = Selection::of(operation, outcome);
                assert!(one.has(operation, outcome) && one.has_any(operation));
                all = all.and(one);
            }
            assert!(all.has_any(operation));
        }
        let only = Selection::of(Operation::Rename, Outcome::Denied);
        assert!(!only.has(Operation::Rename, Outcome::Success));
        assert!(!only.has_any(Operation::Link) && !only.is_empty());
        assert!(Selection::NONE.is_empty());
    }

    #[test]
    fn outcomes_follow_the_status() {
        for (status, expected) in [
            (Status::SUCCESS, Outcome::Success),
            (Status::ACCESS_DENIED, Outcome::Denied),
            (Status::MEDIA_WRITE_PROTECTED, Outcome::Denied),
            (Status::OBJECT_NAME_NOT_FOUND, Outcome::Failed),
            (Status::STOPPED_ON_SYMLINK, Outcome::Failed),
        ] {
            assert_eq!(Outcome::of(status), expected, "{status:?}");
        }
    }

    #[test]
    fn the_end_of_an_open_is_selected_by_its_use() {
        let closed = |read, written| {
            let closing = Closing {
                granted: AccessMask::NONE,
                read,
                written,
                is_modified: false,
            };
            Event {
                session: None,
                user: String::new(),
                kind: AccountKind::Named,
                share: None,
                object: None,
                action: Action::Close(closing),
                status: Status::SUCCESS,
            }
        };
        let of = |operation| Selection::of(operation, Outcome::Success);
        assert!(!closed(0, 0).is_selected(of(Operation::Read)));
        assert!(closed(1, 0).is_selected(of(Operation::Read)));
        assert!(!closed(1, 0).is_selected(of(Operation::Write)));
        assert!(closed(0, 1).is_selected(of(Operation::Write)));
        assert!(closed(0, 0).is_selected(of(Operation::Close)));
    }
}
