//! Client caching: which rights a client has to cache a stream, and when it must give them up.
//! \[MS-FSA\] 2.1.5.18, 2.1.4.12
//!
//! At most one holder has WRITE_CACHING. An open of the stream by another client that does more
//! than read attributes waits in the table until the holder has acknowledged the break, has
//! closed its opens, or has reached its time limit. Any number of holders have READ_CACHING: they
//! receive a notification when the data change, and no request waits for them.

mod breaking;
mod directory;
mod holder;
mod state;

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering};

use wire::access::AccessMask;
use wire::create_context::{Lease, LeaseState};
use wire::{Guid, Status};

use super::file_locks::FileLocks;
use super::{FileTable, StreamRecord, push};
use crate::file::{FileKey, LocalOpen};
use crate::id::ConnectionId;
use crate::notice::Notice;
use crate::server::notices::Notices;
use crate::time::Instant;

pub(crate) use breaking::{BreakWait, OpenAttempt};
pub(crate) use directory::ChangeTime;
pub(super) use directory::{DirectoryName, LeasedDirectories, RecentBreaks};
pub(super) use holder::Holder;
pub(crate) use holder::{BreakTarget, HolderId, LeaseId, LeaseTerms};
use state::{Kind, State, Surroundings};
pub(crate) use state::{of_oplock, oplock_level};

/// Rights that do not break an oplock: those of \[MS-FSA\] 2.1.5.1.2.2, and smbtorture
/// smb2.oplock.statopen1. READ_CONTROL breaks an oplock, unlike a lease.
const STAT_RIGHTS: AccessMask = AccessMask(
    AccessMask::FILE_READ_ATTRIBUTES.0
        | AccessMask::FILE_WRITE_ATTRIBUTES.0
        | AccessMask::SYNCHRONIZE.0,
);

/// Rights that do not break a lease. smbtorture smb2.lease.statopen4
const LEASE_STAT_RIGHTS: AccessMask = AccessMask(STAT_RIGHTS.0 | AccessMask::READ_CONTROL.0);

/// A request for caching rights, by an open in the table.
#[derive(Clone, Debug)]
pub(crate) struct CachingRequest {
    pub(crate) wanted: LeaseState,
    /// The properties of a new lease. Without effect for an oplock.
    pub(crate) terms: LeaseTerms,
    pub(crate) is_directory: bool,
    pub(crate) now: Instant,
    /// Size of the file in bytes. Byte-range locks beyond it prevent no caching.
    pub(crate) size: u64,
    pub(crate) target: BreakTarget,
}

/// The properties of a new open that depend on the other opens of its stream.
#[derive(Clone, Debug)]
pub(crate) struct Granted {
    /// The caching rights of its oplock; none for an open with a lease.
    pub(crate) rights: LeaseState,
    /// The lease that the open belongs to.
    pub(crate) lease: Option<Lease>,
    /// Whether any holder caches reads while other opens may write. Cheap to check after each
    /// write.
    pub(crate) has_readers: Arc<AtomicBool>,
    /// The byte-range locks of the stream. Cheap to check before each read and write.
    pub(crate) locks: Arc<FileLocks>,
}

/// Whether an open with these rights breaks no oplock.
pub(crate) fn is_stat_only(access: AccessMask) -> bool {
    STAT_RIGHTS.contains(access)
}

/// Whether an open with these rights breaks no lease.
fn is_lease_stat_only(access: AccessMask) -> bool {
    LEASE_STAT_RIGHTS.contains(access)
}

impl FileTable {
    /// Grants caching rights to the holder of an open in the table: as many of the wanted rights
    /// as the other opens permit. \[MS-FSA\] 2.1.5.18.1; as with Windows and Samba, an oplock
    /// request for more than level II gets level II where that is available.
    pub(crate) fn grant(&self, key: FileKey, open: LocalOpen, request: &CachingRequest) -> Granted {
        let mut files = self.files.lock();
        let stream = files.stream_mut(key).expect("the open is in the table");
        let record = stream.open_mut(open).expect("the open is in the table");
        record.target = Some(request.target.clone());
        let (holder, parent) = (record.holder, record.parent_lease);
        let path = (request.is_directory).then(|| record.path.clone());
        let (rights, lease) = match holder.kind() {
            Kind::Oplock => (stream.grant_oplock(holder, request), None),
            Kind::Lease => {
                stream.grant_lease(holder, request);
                (LeaseState::NONE, stream.lease(holder, parent))
            }
        };
        let granted = Granted {
            rights,
            lease,
            has_readers: stream.has_readers.clone(),
            locks: stream.locks.clone(),
        };
        if let (Some(path), Some(lease)) = (path, holder.lease()) {
            let name = DirectoryName::new(open.share, &path);
            if files.lease_directory(lease, name) {
                self.directory_leases.fetch_add(1, Ordering::SeqCst);
            }
        }
        granted
    }

    /// The client acknowledges a break of the oplock of an open, and keeps these rights. Returns
    /// the rights that it has now, which may be less. \[MS-SMB2\] 3.3.5.22.1
    pub(crate) fn acknowledge(
        &self,
        key: FileKey,
        open: LocalOpen,
        rights: LeaseState,
        notices: &mut Notices,
    ) -> Result<LeaseState, Status> {
        let mut files = self.files.lock();
        let stream = files.stream_mut(key);
        let stream = stream.ok_or(Status::INVALID_OPLOCK_PROTOCOL)?;
        let index = stream.index(HolderId::Open(open));
        let index = index.ok_or(Status::INVALID_OPLOCK_PROTOCOL)?;
        let kept = stream.holders[index].state.acknowledge_oplock(rights);
        stream.changed(notices);
        kept
    }

    /// A client acknowledges a break of its lease, and keeps these rights. Any session of the
    /// client may do so. The client may have to give up more; then another break starts.
    /// \[MS-SMB2\] 3.3.5.22.2
    pub(crate) fn acknowledge_lease(
        &self,
        lease: LeaseId,
        rights: LeaseState,
        deadline: Instant,
        notices: &mut Notices,
    ) -> Result<(), Status> {
        let mut files = self.files.lock();
        let key = files.leased(lease).ok_or(Status::OBJECT_NAME_NOT_FOUND)?;
        let stream = files.stream_mut(key).expect("a lease has an open");
        let index = stream.index(HolderId::Lease(lease));
        let index = index.ok_or(Status::OBJECT_NAME_NOT_FOUND)?;
        let holder = &mut stream.holders[index];
        if let Some(step) = holder.state.acknowledge_lease(rights, deadline)? {
            stream.notify(index, step, notices);
        }
        stream.changed(notices);
        Ok(())
    }

    /// The notification of a break that the client of an open received last, to send it again;
    /// `None` if the client has acknowledged it.
    pub(crate) fn last_notification(
        &self,
        key: FileKey,
        open: LocalOpen,
    ) -> Option<(ConnectionId, Notice)> {
        let files = self.files.lock();
        let stream = files.stream(key)?;
        stream.last_notification(stream.open(open)?)
    }

    /// The caching rights of an open for the answer to a replay of its CREATE. Ends the break of an
    /// oplock: its client learns of the open only now, and never used the rights that the break
    /// removes.
    pub(crate) fn settle(
        &self,
        key: FileKey,
        open: LocalOpen,
        notices: &mut Notices,
    ) -> (LeaseState, Option<Lease>) {
        let mut files = self.files.lock();
        let nothing = (LeaseState::NONE, None);
        let Some(stream) = files.stream_mut(key) else {
            return nothing;
        };
        let Some(record) = stream.open(open) else {
            return nothing;
        };
        let (holder, parent) = (record.holder, record.parent_lease);
        if holder.kind() == Kind::Lease {
            return (LeaseState::NONE, stream.lease(holder, parent));
        }
        let Some(state) = stream.state(holder) else {
            return nothing;
        };
        if state.is_breaking() {
            stream.hold_oplock(holder, state.remaining());
            stream.wake(notices);
        }
        (state.remaining(), None)
    }

    /// Ends the rights of an open without a notification: its client is disconnected. They are
    /// those of its oplock, or of its lease with all opens of it. The requests that wait for a
    /// break of them continue.
    pub(crate) fn end_rights(&self, key: FileKey, open: LocalOpen, notices: &mut Notices) {
        let mut files = self.files.lock();
        let Some(stream) = files.stream_mut(key) else {
            return;
        };
        let Some(holder) = stream.open(open).map(|record| record.holder) else {
            return;
        };
        let Some(index) = stream.index(holder) else {
            return;
        };
        let was_breaking = stream.holders[index].is_breaking();
        stream.holders[index].revoke();
        stream.holders.retain(|holder| !holder.is_over());
        stream.note_readers();
        if was_breaking {
            stream.wake(notices);
        }
    }
}

impl StreamRecord {
    /// Grants an oplock to a new open.
    fn grant_oplock(&mut self, holder: HolderId, request: &CachingRequest) -> LeaseState {
        let granted = self.grantable(holder, request);
        self.hold_oplock(holder, granted);
        // A LOCK request checks for readers afterwards: one of the two requests sees the other.
        if self.is_locked_reader(holder, request.size) {
            self.hold_oplock(holder, LeaseState::NONE);
            return LeaseState::NONE;
        }
        granted
    }

    /// Grants a lease, or upgrades one. A lease gets either all wanted rights in addition to those
    /// that it has, or stays as it is. smbtorture smb2.lease.upgrade, upgrade2, upgrade3
    fn grant_lease(&mut self, holder: HolderId, request: &CachingRequest) {
        let granted = self.grantable(holder, request);
        let Some(index) = self.index(holder) else {
            self.add_lease(holder, granted, request.terms);
            if self.is_locked_reader(holder, request.size) {
                self.holders.retain(|other| other.id != holder);
                self.add_lease(holder, LeaseState::NONE, request.terms);
            }
            return;
        };
        let found = &mut self.holders[index];
        let held = found.state.held();
        let is_upgrade = request.wanted.contains(held) && granted == request.wanted;
        if is_upgrade && granted != held && !found.state.is_breaking() {
            found.state = State::new(Kind::Lease, granted);
            found.epoch = found.epoch.wrapping_add(1);
            self.note_readers();
        }
    }

    fn add_lease(&mut self, holder: HolderId, rights: LeaseState, terms: LeaseTerms) {
        push(&mut self.holders, Holder::of_lease(holder, rights, terms));
        self.note_readers();
    }

    fn grantable(&self, holder: HolderId, request: &CachingRequest) -> LeaseState {
        let mut others = self.holders.iter().filter(|other| other.id != holder);
        let is_sole = |other: &Holder| other.state.is_sole();
        if others.clone().any(is_sole) || self.changes_often(request.now) {
            return LeaseState::NONE;
        }
        let mut opens = self.opens.iter().filter(|open| open.holder != holder);
        let is_handle_lease = |other: &Holder| {
            let is_lease = other.id.kind() == Kind::Lease;
            is_lease && other.state.held().contains(LeaseState::HANDLE_CACHING)
        };
        let around = Surroundings {
            has_oplock: others.clone().any(|it| it.id.kind() == Kind::Oplock),
            has_handle_lease: others.clone().any(is_handle_lease),
            is_alone: opens.all(|open| open.is_stat_only) && others.next().is_none(),
            is_directory: request.is_directory,
        };
        state::grantable(request.wanted, holder.kind(), around)
    }

    /// Whether a holder caches reads although byte-range locks of the file exist. Windows and Samba
    /// grant no such right. For a lease, locks beyond the end of the file do not count (smbtorture
    /// smb2.lease.lock2).
    fn is_locked_reader(&self, holder: HolderId, size: u64) -> bool {
        let is_reader = self.state(holder).is_some_and(State::is_reader);
        let end = match holder.kind() {
            Kind::Oplock => u64::MAX,
            Kind::Lease => size,
        };
        is_reader && self.locks.is_any_below(end)
    }

    fn index(&self, holder: HolderId) -> Option<usize> {
        self.holders.iter().position(|other| other.id == holder)
    }

    /// The state of a holder.
    fn state(&self, holder: HolderId) -> Option<State> {
        self.index(holder).map(|index| self.holders[index].state)
    }

    /// The lease of a holder for the answer to a CREATE.
    fn lease(&self, holder: HolderId, parent: Option<Guid>) -> Option<Lease> {
        self.holders[self.index(holder)?].granted_lease(parent)
    }

    /// Sets the rights of an oplock; ends a break in progress.
    fn hold_oplock(&mut self, holder: HolderId, rights: LeaseState) {
        self.holders.retain(|other| other.id != holder);
        if !rights.is_empty() {
            push(&mut self.holders, Holder::of_oplock(holder, rights));
        }
        self.note_readers();
    }

    /// An open has closed. Its holder ends with the last of its opens. Returns a lease that has
    /// ended.
    pub(super) fn closed(&mut self, holder: HolderId, notices: &mut Notices) -> Option<LeaseId> {
        if self.opens.iter().any(|open| open.holder == holder) {
            return None;
        }
        let was_breaking = self.state(holder).is_some_and(State::is_breaking);
        self.holders.retain(|other| other.id != holder);
        self.note_readers();
        if was_breaking {
            self.wake(notices);
        }
        holder.lease()
    }

    /// A break has ended, or a client has acknowledged a step of it.
    fn changed(&mut self, notices: &mut Notices) {
        self.holders.retain(|holder| !holder.is_over());
        self.note_readers();
        self.wake(notices);
    }

    fn note_readers(&self) {
        let has_readers = self.holders.iter().any(|holder| holder.state.is_reader());
        self.has_readers.store(has_readers, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests;
