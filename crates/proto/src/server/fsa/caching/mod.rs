//! Client caching: which rights a client has to cache a stream, and when it must give them up.
//! \[MS-FSA\] 2.1.5.18, 2.1.4.12
//!
//! At most one holder has WRITE_CACHING. An open of the stream by another client that does more
//! than read attributes waits in the table until the holder has acknowledged the break, has
//! closed its opens, or has reached its time limit. Any number of holders have READ_CACHING: they
//! receive a notification when the data change, and no request waits for them.

mod breaking;
mod holder;
mod state;

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering};

use wire::Status;
use wire::access::AccessMask;
use wire::create_context::LeaseState;

use super::file_locks::FileLocks;
use super::{FileTable, StreamRecord};
use crate::file::{FileKey, LocalOpen};
use crate::server::notices::Notices;

pub(crate) use breaking::{BreakWait, OpenAttempt};
pub(super) use holder::Holder;
pub(crate) use holder::{BreakTarget, HolderId};
use state::State;
pub(crate) use state::{of_oplock, oplock_level};

/// Rights that do not break an oplock: those of \[MS-FSA\] 2.1.5.1.2.2, and smbtorture
/// smb2.oplock.statopen1. READ_CONTROL breaks an oplock, unlike a lease.
const STAT_RIGHTS: AccessMask = AccessMask(
    AccessMask::FILE_READ_ATTRIBUTES.0
        | AccessMask::FILE_WRITE_ATTRIBUTES.0
        | AccessMask::SYNCHRONIZE.0,
);

/// The properties of a new open that depend on the other opens of its stream.
#[derive(Clone, Debug)]
pub(crate) struct Granted {
    /// The caching rights of its holder.
    pub(crate) rights: LeaseState,
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

impl FileTable {
    /// Grants caching rights to the holder of an open in the table: as many of the wanted rights
    /// as the other opens permit. \[MS-FSA\] 2.1.5.18.1; as with Windows and Samba, an oplock
    /// request for more than level II gets level II where that is available. A lease keeps the
    /// rights that it has.
    pub(crate) fn grant(
        &self,
        key: FileKey,
        open: LocalOpen,
        wanted: LeaseState,
        target: &BreakTarget,
    ) -> Granted {
        let mut files = self.files.lock();
        let stream = files.stream_mut(key).expect("the open is in the table");
        let record = stream.open_mut(open).expect("the open is in the table");
        record.target = Some(target.clone());
        let holder = record.holder;
        let rights = stream.grant(holder, wanted);
        Granted {
            rights,
            has_readers: stream.has_readers.clone(),
            locks: stream.locks.clone(),
        }
    }

    /// The client acknowledges a break: the holder of the open keeps these rights. Returns the
    /// rights that it has now, which may be less. Fails with INVALID_OPLOCK_PROTOCOL if there is
    /// no break in progress or the client wants to keep more than it may. \[MS-SMB2\] 3.3.5.22
    pub(crate) fn acknowledge(
        &self,
        key: FileKey,
        open: LocalOpen,
        rights: LeaseState,
        notices: &mut Notices,
    ) -> Result<LeaseState, Status> {
        let mut files = self.files.lock();
        let stream = files.stream_mut(key);
        let holder = stream.and_then(|stream| {
            let holder = stream.open(open)?.holder;
            Some((stream, holder))
        });
        let (stream, holder) = holder.ok_or(Status::INVALID_OPLOCK_PROTOCOL)?;
        let Some(State::Breaking { to, .. }) = stream.state(holder) else {
            return Err(Status::INVALID_OPLOCK_PROTOCOL);
        };
        // A client that keeps READ_CACHING where it must give up all has nothing, and the answer
        // says so, as Samba does. A client that keeps more has nothing either.
        let is_valid = to.contains(rights.without(LeaseState::READ_CACHING));
        let kept = if is_valid {
            rights & to
        } else {
            LeaseState::NONE
        };
        stream.hold(holder, kept);
        stream.wake(notices);
        match is_valid {
            true => Ok(kept),
            false => Err(Status::INVALID_OPLOCK_PROTOCOL),
        }
    }

    /// The rights of an open's holder before and after its last break. Without a break in progress
    /// both are the same.
    pub(crate) fn rights(&self, key: FileKey, open: LocalOpen) -> (LeaseState, LeaseState) {
        let files = self.files.lock();
        let state = files.stream(key).and_then(|stream| {
            let holder = stream.open(open)?.holder;
            stream.state(holder)
        });
        let none = State::Held(LeaseState::NONE);
        let state = state.unwrap_or(none);
        (state.before_break(), state.after_break())
    }

    /// Ends a break in progress for a client that learns of its open only now: it never used the
    /// rights that the break removes. Returns the rights that it has.
    pub(crate) fn settle(
        &self,
        key: FileKey,
        open: LocalOpen,
        notices: &mut Notices,
    ) -> LeaseState {
        let mut files = self.files.lock();
        let stream = files.stream_mut(key);
        let holder = stream.and_then(|stream| {
            let holder = stream.open(open)?.holder;
            let state = stream.state(holder)?;
            Some((stream, holder, state))
        });
        let Some((stream, holder, state)) = holder else {
            return LeaseState::NONE;
        };
        if state.is_breaking() {
            stream.hold(holder, state.after_break());
            stream.wake(notices);
        }
        state.after_break()
    }

    /// Ends the oplock of an open without a notification: its client is disconnected. A lease
    /// ends with its last open.
    pub(crate) fn end_oplock(&self, key: FileKey, open: LocalOpen, notices: &mut Notices) {
        let mut files = self.files.lock();
        let Some(stream) = files.stream_mut(key) else {
            return;
        };
        let holder = HolderId::Open(open);
        let was_breaking = stream.state(holder).is_some_and(State::is_breaking);
        stream.hold(holder, LeaseState::NONE);
        if was_breaking {
            stream.wake(notices);
        }
    }
}

impl StreamRecord {
    fn grant(&mut self, holder: HolderId, wanted: LeaseState) -> LeaseState {
        let before = match self.state(holder) {
            // The holder acknowledges the break first.
            Some(State::Breaking { to, .. }) => return to,
            Some(State::Held(held)) => held,
            None => LeaseState::NONE,
        };
        let granted = self.grantable(holder, wanted);
        let rights = if granted.contains(before) {
            granted
        } else {
            before
        };
        self.hold(holder, rights);
        // A LOCK request checks for readers afterwards: one of the two requests sees the other.
        let is_reader = State::Held(rights).is_reader();
        if before.is_empty() && is_reader && !self.locks.is_empty() {
            self.hold(holder, LeaseState::NONE);
            return LeaseState::NONE;
        }
        rights
    }

    fn grantable(&self, holder: HolderId, wanted: LeaseState) -> LeaseState {
        let mut others = self.holders.iter().filter(|other| other.id != holder);
        if others.clone().any(|other| other.state.is_sole()) {
            return LeaseState::NONE;
        }
        let mut opens = self.opens.iter().filter(|open| open.holder != holder);
        let is_alone = opens.all(|open| open.is_stat_only) && others.next().is_none();
        state::grantable(wanted, holder.kind(), is_alone)
    }

    /// The state of a holder that has any right.
    fn state(&self, holder: HolderId) -> Option<State> {
        let mut holders = self.holders.iter();
        let found = holders.find(|other| other.id == holder);
        found.map(|found| found.state)
    }

    /// Sets the rights of a holder; ends a break in progress.
    fn hold(&mut self, holder: HolderId, rights: LeaseState) {
        self.holders.retain(|other| other.id != holder);
        if !rights.is_empty() {
            let state = State::Held(rights);
            self.holders.push(Holder { id: holder, state });
        }
        self.note_readers();
    }

    /// An open has closed. Its holder ends with the last of its opens.
    pub(super) fn closed(&mut self, holder: HolderId, notices: &mut Notices) {
        if self.opens.iter().any(|open| open.holder == holder) {
            return;
        }
        let was_breaking = self.state(holder).is_some_and(State::is_breaking);
        self.hold(holder, LeaseState::NONE);
        if was_breaking {
            self.wake(notices);
        }
    }

    fn note_readers(&self) {
        let has_readers = self.holders.iter().any(|holder| holder.state.is_reader());
        self.has_readers.store(has_readers, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests;
