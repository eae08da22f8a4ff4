//! Caching states and their transitions. \[MS-FSA\] 2.1.4.12
//!
//! A state is a set of the rights READ_CACHING, WRITE_CACHING and HANDLE_CACHING. The levels of an
//! oplock are names for four of these sets.
//!
//! The transitions of leases are those of Samba 4.25, which smbtorture smb2.lease compares with
//! Windows: an open removes one right, a break in progress ends in steps.

use wire::Status;
use wire::access::OplockLevel;
use wire::create_context::LeaseState;

use crate::time::Instant;

const READ: LeaseState = LeaseState::READ_CACHING;
const WRITE: LeaseState = LeaseState::WRITE_CACHING;
const HANDLE: LeaseState = LeaseState::HANDLE_CACHING;
const NONE: LeaseState = LeaseState::NONE;

/// The rights of an oplock level. An unknown level has none.
pub(crate) fn of_oplock(level: OplockLevel) -> LeaseState {
    match level {
        OplockLevel::II => READ,
        OplockLevel::EXCLUSIVE => READ | WRITE,
        OplockLevel::BATCH => READ | WRITE | HANDLE,
        _ => NONE,
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
pub(super) struct State {
    kind: Kind,
    /// The rights of the holder. While a break is in progress, the rights before it.
    held: LeaseState,
    breaking: Option<Breaking>,
}

/// A break that the client has not acknowledged yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Breaking {
    /// The rights that the client was asked to keep.
    requested: LeaseState,
    /// The rights that the client may keep: less than requested if another break became necessary
    /// in the meantime.
    required: LeaseState,
    /// When the server takes all rights away without an acknowledgment. \[MS-SMB2\] 3.3.6.1
    deadline: Instant,
}

/// An open by another holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Conflict {
    /// Whether the open fails with SHARING_VIOLATION as things are.
    pub(super) violates: bool,
    /// Whether the open truncates the file.
    pub(super) overwrites: bool,
    /// Whether the open has waited for a break before.
    pub(super) is_retry: bool,
}

/// The effect of a request on the state of another holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Transition {
    /// The rights that remain. All rights of the holder, if it is not affected.
    pub(super) to: LeaseState,
    /// Whether the request waits for the holder.
    pub(super) must_wait: bool,
}

/// The step of a break of which the client receives a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) from: LeaseState,
    pub(super) to: LeaseState,
    /// Whether the client acknowledges it. \[MS-SMB2\] 2.2.23.2
    pub(super) needs_ack: bool,
}

impl State {
    /// The state of a holder with these rights.
    pub(super) fn new(kind: Kind, held: LeaseState) -> Self {
        Self {
            kind,
            held,
            breaking: None,
        }
    }

    /// The rights of the holder; before a break in progress.
    pub(super) fn held(self) -> LeaseState {
        self.held
    }

    /// The rights that remain after a break in progress.
    pub(super) fn remaining(self) -> LeaseState {
        self.breaking.map_or(self.held, |it| it.required)
    }

    /// Whether the holder caches reads while other opens may write.
    pub(super) fn is_reader(self) -> bool {
        let remaining = self.remaining();
        remaining.contains(READ) && !remaining.contains(WRITE)
    }

    /// Whether no other holder may have any right.
    pub(super) fn is_sole(self) -> bool {
        self.held.contains(WRITE)
    }

    /// Whether a break is in progress.
    pub(super) fn is_breaking(self) -> bool {
        self.breaking.is_some()
    }

    /// When a break in progress ends at the latest.
    pub(super) fn deadline(self) -> Option<Instant> {
        self.breaking.map(|it| it.deadline)
    }

    /// The effect of an open by another holder. An open is in the way of WRITE_CACHING. One that
    /// will fail with SHARING_VIOLATION breaks HANDLE_CACHING alone: a client with that right may
    /// keep the file open without an application that uses it, and closes it when asked.
    pub(super) fn on_open(self, conflict: Conflict) -> Transition {
        let in_the_way = if conflict.violates { HANDLE } else { WRITE };
        let truncates = conflict.overwrites && !conflict.violates;
        let removed = match truncates {
            true => READ | WRITE | HANDLE,
            false => in_the_way,
        };
        let to = self.without(removed);
        let is_breaking = self.kind == Kind::Lease && self.is_breaking();
        let must_wait = match to == self.held {
            true => is_breaking,
            false => self.held.contains(in_the_way) || (is_breaking && conflict.is_retry),
        };
        Transition { to, must_wait }
    }

    /// The effect of a rename or a deletion by another holder. \[MS-FSA\] 2.1.5.15.12
    pub(super) fn on_rename(self) -> Transition {
        Transition {
            to: self.without(HANDLE),
            must_wait: self.held.contains(HANDLE),
        }
    }

    /// The effect of a change of the file's data by another holder: no cached data are valid.
    pub(super) fn on_change(self) -> Transition {
        let to = if self.is_reader() { NONE } else { self.held };
        Transition {
            to,
            must_wait: false,
        }
    }

    /// The state of a holder that is not affected.
    pub(super) fn unaffected(self) -> Transition {
        Transition {
            to: self.held,
            must_wait: false,
        }
    }

    fn without(self, removed: LeaseState) -> LeaseState {
        match self.kind {
            _ if !self.held.intersects(removed) => self.held,
            Kind::Oplock => self.held.without(removed) & READ,
            Kind::Lease => self.held.without(removed),
        }
    }

    /// Starts a break to these rights, if the holder has more. While a break is in progress, a
    /// lease remembers that it must lose more. Returns the step of which the client is notified;
    /// read caching alone needs no acknowledgment. \[MS-SMB2\] 3.3.4.6
    pub(super) fn break_to(&mut self, to: LeaseState, deadline: Instant) -> Option<Step> {
        if let Some(breaking) = &mut self.breaking {
            if self.kind == Kind::Lease {
                breaking.required = breaking.required & to;
            }
            return None;
        }
        let from = self.held;
        if to == from {
            return None;
        }
        let needs_ack = from != READ;
        if needs_ack {
            self.breaking = Some(Breaking {
                requested: to,
                required: to,
                deadline,
            });
        } else {
            self.held = NONE;
        }
        Some(Step {
            from,
            to,
            needs_ack,
        })
    }

    /// The step of which the client was notified last, to notify it again: of a break in progress,
    /// or of the loss of all rights. `None` if it has acknowledged the last break.
    pub(super) fn last_step(self) -> Option<Step> {
        match self.breaking {
            Some(breaking) => Some(Step {
                from: self.held,
                to: breaking.requested,
                needs_ack: true,
            }),
            None if self.held.is_empty() => Some(Step {
                from: READ,
                to: NONE,
                needs_ack: false,
            }),
            None => None,
        }
    }

    /// The client acknowledges a break of an oplock: it keeps these rights, or less. Fails with
    /// INVALID_OPLOCK_PROTOCOL if no break is in progress or the client wants to keep more than it
    /// may; then it has no rights. \[MS-SMB2\] 3.3.5.22.1
    pub(super) fn acknowledge_oplock(&mut self, rights: LeaseState) -> Result<LeaseState, Status> {
        let breaking = self.breaking.take();
        let Breaking { requested, .. } = breaking.ok_or(Status::INVALID_OPLOCK_PROTOCOL)?;
        // A client that keeps READ_CACHING where it must give up all has nothing, and the answer
        // says so, as Samba does.
        let is_valid = requested.contains(rights.without(READ));
        self.held = if is_valid { rights & requested } else { NONE };
        match is_valid {
            true => Ok(self.held),
            false => Err(Status::INVALID_OPLOCK_PROTOCOL),
        }
    }

    /// The client acknowledges a break of a lease: it keeps these rights. Returns the next step, if
    /// the client has to give up more. Like Windows, the server removes all rights but READ_CACHING
    /// first (smbtorture smb2.lease.breaking3). Fails with UNSUCCESSFUL if no break is in progress,
    /// and with REQUEST_NOT_ACCEPTED if the client wants to keep more than it may.
    /// \[MS-SMB2\] 3.3.5.22.2
    pub(super) fn acknowledge_lease(
        &mut self,
        rights: LeaseState,
        deadline: Instant,
    ) -> Result<Option<Step>, Status> {
        let breaking = self.breaking.ok_or(Status::UNSUCCESSFUL)?;
        if !breaking.requested.contains(rights) {
            return Err(Status::REQUEST_NOT_ACCEPTED);
        }
        self.held = rights;
        self.breaking = None;
        if breaking.required.contains(rights) {
            return Ok(None);
        }
        let more = rights.intersects(WRITE | HANDLE);
        let kept = if more { READ } else { NONE };
        let mut requested = (breaking.required | kept) & rights;
        if requested == rights {
            requested = breaking.required & rights;
        }
        let step = self.break_to(requested, deadline);
        if let Some(next) = &mut self.breaking {
            next.required = breaking.required;
        }
        Ok(step)
    }
}

/// The circumstances of a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Surroundings {
    /// No other open can read or write the file, and no other holder exists.
    pub(super) is_alone: bool,
    /// Another open has an oplock.
    pub(super) has_oplock: bool,
    /// Another holder is a lease with HANDLE_CACHING.
    pub(super) has_handle_lease: bool,
    pub(super) is_directory: bool,
}

/// The rights that a holder gets of those that it asks for. \[MS-FSA\] 2.1.5.18
///
/// Oplocks and leases on one file: smbtorture smb2.lease.oplock. A directory has no WRITE_CACHING:
/// Windows Server 2022 ignores the right there, where \[MS-FSA\] fails the request.
pub(super) fn grantable(wanted: LeaseState, kind: Kind, around: Surroundings) -> LeaseState {
    let mut granted = wanted & (READ | WRITE | HANDLE);
    if around.is_directory {
        granted = granted.without(WRITE);
    }
    if !granted.contains(READ) {
        return NONE;
    }
    if !around.is_alone {
        granted = granted.without(WRITE);
    }
    match kind {
        Kind::Oplock if around.has_handle_lease => NONE,
        Kind::Oplock if !granted.contains(WRITE) => granted & READ,
        Kind::Lease if around.has_oplock => granted.without(HANDLE),
        Kind::Oplock | Kind::Lease => granted,
    }
}
