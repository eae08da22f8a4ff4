//! Caching states and their transitions. \[MS-FSA\] 2.1.4.12
//!
//! A state is a set of the rights READ_CACHING, WRITE_CACHING and HANDLE_CACHING. The levels of an
//! oplock are names for four of these sets.

use wire::access::OplockLevel;
use wire::create_context::LeaseState;

use crate::time::Instant;

const READ: LeaseState = LeaseState::READ_CACHING;
const WRITE: LeaseState = LeaseState::WRITE_CACHING;
const HANDLE: LeaseState = LeaseState::HANDLE_CACHING;

/// The rights of an oplock level. An unknown level has none.
pub(crate) fn of_oplock(level: OplockLevel) -> LeaseState {
    match level {
        OplockLevel::II => READ,
        OplockLevel::EXCLUSIVE => READ | WRITE,
        OplockLevel::BATCH => READ | WRITE | HANDLE,
        _ => LeaseState::NONE,
    }
}

/// The highest oplock level with no rights beyond `rights`.
pub(crate) fn oplock_level(rights: LeaseState) -> OplockLevel {
    [OplockLevel::BATCH, OplockLevel::EXCLUSIVE, OplockLevel::II]
        .into_iter()
        .find(|level| rights.contains(of_oplock(*level)))
        .unwrap_or(OplockLevel::NONE)
}

/// The kind of a holder. It decides which states a break can lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// An oplock breaks to level II or to none.
    Oplock,
    /// A lease loses just the rights that are in the way.
    Lease,
}

/// The state of one holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The holder may use these rights: at least READ_CACHING.
    Held(LeaseState),
    /// The server has asked the holder to give rights up; the holder has not acknowledged yet.
    Breaking {
        /// The rights before the break.
        from: LeaseState,
        /// The rights after the acknowledgment.
        to: LeaseState,
        /// When the server takes all rights away without an acknowledgment. \[MS-SMB2\] 3.3.6.1
        deadline: Instant,
    },
}

/// The effect of an open on the state of another holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transition {
    /// The holder keeps its rights.
    Unaffected,
    /// The holder loses all rights at once. It receives a notification and does not acknowledge.
    Revoke,
    /// The holder is asked to keep these rights only.
    Break {
        to: LeaseState,
        /// Whether the open waits for the acknowledgment.
        must_wait: bool,
    },
    /// The open waits for the acknowledgment of a break in progress.
    Wait,
}

impl State {
    /// The effect of an open on the state. `violates`: the open will fail with SHARING_VIOLATION
    /// unless other opens close. `overwrites`: the open truncates the file. The table is that of
    /// \[MS-FSA\] 2.1.4.12, as Samba and smbtorture smb2.oplock apply it.
    ///
    /// An open that will fail with SHARING_VIOLATION breaks HANDLE_CACHING alone: a client with
    /// that right may keep the file open without an application that uses it, and closes it when
    /// asked. Without the right, a break would not help the open.
    pub(super) fn transition(self, kind: Kind, violates: bool, overwrites: bool) -> Transition {
        let in_the_way = if violates { HANDLE } else { WRITE };
        match self {
            Self::Breaking { from, .. } if from.contains(in_the_way) => Transition::Wait,
            Self::Breaking { .. } => Transition::Unaffected,
            Self::Held(held) if violates && !held.contains(HANDLE) => Transition::Unaffected,
            Self::Held(held) => {
                let removed = if overwrites { held } else { in_the_way };
                let must_wait = held.contains(in_the_way);
                remove(held, removed, kind, must_wait)
            }
        }
    }

    /// The effect of a rename that no open may be in the way of. \[MS-FSA\] 2.1.5.15.12
    pub(super) fn without_handle(self, kind: Kind) -> Transition {
        match self {
            Self::Breaking { from, .. } if from.contains(HANDLE) => Transition::Wait,
            Self::Held(held) if held.contains(HANDLE) => remove(held, HANDLE, kind, true),
            Self::Held(_) | Self::Breaking { .. } => Transition::Unaffected,
        }
    }

    /// The effect of a change of the file's data by another holder. A pending break of a holder
    /// without WRITE_CACHING is not affected: only a lease can be in that state, and the server
    /// grants none yet.
    pub(super) fn without_read(self, kind: Kind) -> Transition {
        match self {
            Self::Held(held) if self.is_reader() => remove(held, held, kind, false),
            Self::Held(_) | Self::Breaking { .. } => Transition::Unaffected,
        }
    }

    /// Whether the holder caches reads while other opens may write.
    pub(super) fn is_reader(self) -> bool {
        matches!(self, Self::Held(held) if held.contains(READ) && !held.contains(WRITE))
    }

    /// Whether no other holder may have any right.
    pub(super) fn is_sole(self) -> bool {
        self.before_break().contains(WRITE)
    }

    /// Whether a break is in progress.
    pub(super) fn is_breaking(self) -> bool {
        matches!(self, Self::Breaking { .. })
    }

    /// When a break in progress ends at the latest.
    pub(super) fn deadline(self) -> Option<Instant> {
        match self {
            Self::Breaking { deadline, .. } => Some(deadline),
            Self::Held(_) => None,
        }
    }

    /// The rights before a break in progress.
    pub(super) fn before_break(self) -> LeaseState {
        match self {
            Self::Held(held) => held,
            Self::Breaking { from, .. } => from,
        }
    }

    /// The rights after a break in progress.
    pub(super) fn after_break(self) -> LeaseState {
        match self {
            Self::Held(held) => held,
            Self::Breaking { to, .. } => to,
        }
    }
}

/// Removes rights from `held`. Read caching alone needs no acknowledgment. \[MS-SMB2\] 3.3.4.6
fn remove(held: LeaseState, removed: LeaseState, kind: Kind, must_wait: bool) -> Transition {
    let to = match kind {
        Kind::Oplock => held.without(removed) & READ,
        Kind::Lease => held.without(removed),
    };
    match to {
        to if to == held => Transition::Unaffected,
        _ if held == READ => Transition::Revoke,
        to => Transition::Break { to, must_wait },
    }
}

/// The rights that a holder gets of those that it asks for. `is_alone`: no other open can read or
/// write the file, and no other holder caches it. \[MS-FSA\] 2.1.5.18
pub(super) fn grantable(wanted: LeaseState, kind: Kind, is_alone: bool) -> LeaseState {
    match kind {
        _ if is_alone => wanted,
        Kind::Oplock => wanted & READ,
        Kind::Lease => wanted.without(WRITE),
    }
}
