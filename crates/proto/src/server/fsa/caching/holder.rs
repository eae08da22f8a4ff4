//! The holders of caching rights: an open with an oplock, or a lease that several opens share.

use wire::access::OplockLevel;
use wire::{FileId, Guid, SessionId};

use super::state::{Kind, State, oplock_level};
use crate::file::LocalOpen;
use crate::id::ConnectionId;

/// Identifies a holder of caching rights on a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HolderId {
    /// An open, which holds the rights of its oplock.
    Open(LocalOpen),
    /// A lease. All opens of a client with one lease key share it, over all sessions of the
    /// client, and none of them breaks it. \[MS-SMB2\] 3.3.1.11, 3.3.1.12
    #[cfg_attr(not(test), expect(dead_code, reason = "no lease is granted yet"))]
    Lease {
        /// The ClientGuid of NEGOTIATE.
        client: Guid,
        /// The LeaseKey of the create context.
        key: Guid,
    },
}

impl HolderId {
    pub(super) fn kind(self) -> Kind {
        match self {
            Self::Open(_) => Kind::Oplock,
            Self::Lease { .. } => Kind::Lease,
        }
    }

    /// The lease key; `None` for an oplock.
    pub(super) fn lease_key(self) -> Option<Guid> {
        match self {
            Self::Open(_) => None,
            Self::Lease { key, .. } => Some(key),
        }
    }
}

/// A holder with at least one right, or with a break in progress.
#[derive(Clone, Debug)]
pub(in super::super) struct Holder {
    pub(super) id: HolderId,
    pub(super) state: State,
}

impl Holder {
    /// Identifies the holder.
    pub(in super::super) fn id(&self) -> HolderId {
        self.id
    }

    /// The oplock level before a break in progress; LEASE for a lease.
    pub(in super::super) fn oplock_before_break(&self) -> OplockLevel {
        match self.id {
            HolderId::Open(_) => oplock_level(self.state.before_break()),
            HolderId::Lease { .. } => OplockLevel::LEASE,
        }
    }
}

/// The open through which the client of a holder receives break notifications.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BreakTarget {
    /// The connection that made the open.
    pub(crate) connection: ConnectionId,
    /// The session of the open.
    pub(crate) session: SessionId,
    /// The id of the open.
    pub(crate) file_id: FileId,
}
