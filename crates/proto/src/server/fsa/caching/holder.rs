//! The holders of caching rights: an open with an oplock, or a lease that several opens share.

use wire::access::OplockLevel;
use wire::create_context::{Lease, LeaseFlags, LeaseState, LeaseV2};
use wire::{FileId, Guid, SessionId};

use super::state::{Kind, State, Step, oplock_level};
use crate::file::LocalOpen;
use crate::id::ConnectionId;
use crate::notice::LeaseBreak;
use crate::time::Instant;

/// Identifies a lease of the server. All opens of a client with one lease key share the lease, over
/// all sessions of the client, and none of them breaks it. \[MS-SMB2\] 3.3.1.11, 3.3.1.12
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LeaseId {
    /// The ClientGuid of NEGOTIATE.
    pub(crate) client: Guid,
    /// The LeaseKey of the create context.
    pub(crate) key: Guid,
}

/// Identifies a holder of caching rights on a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HolderId {
    /// An open, which holds the rights of its oplock.
    Open(LocalOpen),
    /// A lease.
    Lease(LeaseId),
}

impl HolderId {
    pub(super) fn kind(self) -> Kind {
        match self {
            Self::Open(_) => Kind::Oplock,
            Self::Lease(_) => Kind::Lease,
        }
    }

    /// The lease; `None` for an oplock.
    pub(crate) fn lease(self) -> Option<LeaseId> {
        match self {
            Self::Open(_) => None,
            Self::Lease(lease) => Some(lease),
        }
    }
}

/// A holder with at least one right or a break in progress, or a lease. A lease without rights
/// stays until its last open is closed, because a later open may get rights for it.
#[derive(Clone, Debug)]
pub(in super::super) struct Holder {
    pub(super) id: HolderId,
    pub(super) state: State,
    /// Number of state changes of a lease. \[MS-SMB2\] 3.3.1.12, Lease.Epoch
    pub(super) epoch: u16,
    /// Whether the lease has version 2. \[MS-SMB2\] 3.3.1.12, Lease.Version
    pub(super) is_v2: bool,
}

impl Holder {
    /// A holder of an oplock with these rights.
    pub(super) fn of_oplock(id: HolderId, rights: LeaseState) -> Self {
        Self {
            id,
            state: State::new(Kind::Oplock, rights),
            epoch: 0,
            is_v2: false,
        }
    }

    /// A new lease with these rights. A grant of rights is a change of its state.
    /// \[MS-SMB2\] 3.3.5.9.11, smbtorture smb2.lease.lease-epoch
    pub(super) fn of_lease(id: HolderId, rights: LeaseState, terms: LeaseTerms) -> Self {
        Self {
            id,
            state: State::new(Kind::Lease, rights),
            epoch: terms.epoch.wrapping_add(u16::from(!rights.is_empty())),
            is_v2: terms.is_v2,
        }
    }

    /// Starts a break. Returns the step of which the client is notified.
    pub(super) fn break_to(&mut self, to: LeaseState, deadline: Instant) -> Option<Step> {
        let step = self.state.break_to(to, deadline)?;
        self.epoch = self.epoch.wrapping_add(1);
        Some(step)
    }

    /// Takes all rights away without a notification.
    pub(super) fn revoke(&mut self) {
        self.state = State::new(self.id.kind(), LeaseState::NONE);
    }

    /// Identifies the holder.
    pub(in super::super) fn id(&self) -> HolderId {
        self.id
    }

    /// The oplock level before a break in progress; LEASE for a lease.
    pub(in super::super) fn oplock_before_break(&self) -> OplockLevel {
        match self.id {
            HolderId::Open(_) => oplock_level(self.state.held()),
            HolderId::Lease(_) => OplockLevel::LEASE,
        }
    }

    /// Whether a break is in progress.
    pub(in super::super) fn is_breaking(&self) -> bool {
        self.state.is_breaking()
    }

    /// The rights before a break in progress.
    pub(in super::super) fn rights_before_break(&self) -> LeaseState {
        self.state.held()
    }

    /// Whether the holder has neither a right nor an identity that a later open could find.
    pub(super) fn is_over(&self) -> bool {
        let has_none = self.state.held().is_empty() && !self.state.is_breaking();
        has_none && self.id.lease().is_none()
    }

    /// The lease for a notification of its break.
    pub(super) fn lease_break(&self, step: Step) -> Option<LeaseBreak> {
        let LeaseId { client, key } = self.id.lease()?;
        Some(LeaseBreak {
            client,
            key,
            // 0 for version 1. [MS-SMB2] 2.2.23.2
            epoch: if self.is_v2 { self.epoch } else { 0 },
            needs_ack: step.needs_ack,
        })
    }

    /// The lease for the answer to a CREATE. \[MS-SMB2\] 3.3.5.9.8, 3.3.5.9.11
    pub(super) fn granted_lease(&self, parent: Option<Guid>) -> Option<Lease> {
        let LeaseId { key, .. } = self.id.lease()?;
        let mut lease_flags = LeaseFlags::NONE;
        if self.state.is_breaking() {
            lease_flags |= LeaseFlags::BREAK_IN_PROGRESS;
        }
        let parent = parent.filter(|_| self.is_v2);
        if parent.is_some() {
            lease_flags |= LeaseFlags::PARENT_LEASE_KEY_SET;
        }
        Some(Lease {
            lease_key: key,
            lease_state: self.state.held(),
            lease_flags,
            v2: self.is_v2.then(|| LeaseV2 {
                parent_lease_key: parent.unwrap_or(Guid([0; 16])),
                epoch: self.epoch,
            }),
        })
    }
}

/// The parts of a lease request that a new lease keeps. \[MS-SMB2\] 2.2.13.2.8, 2.2.13.2.10
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct LeaseTerms {
    /// Whether the request has version 2.
    pub(crate) is_v2: bool,
    /// The epoch of the client; 0 in version 1.
    pub(crate) epoch: u16,
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
