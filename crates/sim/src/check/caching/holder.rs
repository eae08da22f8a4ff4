//! One holder of caching rights, and the data that its client caches under it.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::time::Duration;

use proto::time::Instant;
use wire::create_context::LeaseState;
use wire::{FileId, Guid, SessionId};

use super::Notified;
use crate::check::contents::{Span, Stamp};
use crate::check::directories::Listing;
use crate::check::opens;

pub(crate) const READ: LeaseState = LeaseState::READ_CACHING;
pub(crate) const WRITE: LeaseState = LeaseState::WRITE_CACHING;
pub(crate) const HANDLE: LeaseState = LeaseState::HANDLE_CACHING;
pub(crate) const NONE: LeaseState = LeaseState::NONE;

/// Time for which a right is certain after the server started a break that needs an acknowledgment.
/// The server waits 35 seconds. The start of its break may be earlier than the notice of it.
const CERTAIN: Duration = Duration::from_secs(30);

/// Identifies a holder in the messages of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Name {
    /// ClientGuid and LeaseKey.
    Lease(Guid, Guid),
    /// An open of a session.
    Oplock(SessionId, FileId),
}

/// A write that the client delays.
#[derive(Clone, Debug)]
pub(crate) struct Delayed {
    pub(crate) cells: Range<u32>,
    pub(crate) stamp: Stamp,
    /// Tick at which the application of the client wrote: for it, the write was complete.
    pub(crate) at: u64,
    /// The open that writes the data to the server.
    pub(crate) by: opens::Holder,
}

/// A break of which the client has received the notification, and that it must acknowledge.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Breaking {
    /// The rights that the client may keep.
    pub(crate) to: LeaseState,
    /// Time of the notification.
    pub(crate) since: Instant,
    /// Time of the acknowledgment; `None` if the client never sends one.
    pub(crate) due: Option<Instant>,
    /// The client that acknowledges.
    pub(crate) by: usize,
    /// Whether that client first sends an acknowledgment that keeps too much.
    pub(crate) is_greedy: bool,
    /// Whether that client sends the acknowledgment twice.
    pub(crate) is_doubled: bool,
}

/// A holder of caching rights: a lease or an open with an oplock.
#[derive(Debug)]
pub(crate) struct Holder {
    /// `None` for an oplock of which the response has not arrived.
    pub(crate) name: Option<Name>,
    /// The only client that uses it: leases of version 1 and oplocks. Clients with one ClientGuid
    /// share a lease of version 2.
    pub(crate) owner: Option<usize>,
    pub(crate) machine: usize,
    pub(crate) path: String,
    pub(crate) is_v2: bool,
    /// Number of the file, once a response has arrived.
    pub(crate) key: Option<u64>,
    /// The opens of the holder, from the sent CREATE to the sent CLOSE, and whether the response to
    /// the CREATE has arrived.
    pub(crate) members: BTreeMap<opens::Holder, bool>,
    /// The rights that the client has received and has not given up.
    pub(crate) rights: LeaseState,
    /// Tick at which the client last received a right.
    pub(crate) since: u64,
    pub(crate) breaking: Option<Breaking>,
    /// Acknowledgments in flight.
    pub(crate) acknowledging: u32,
    /// The newest epoch that the client knows.
    pub(super) epoch: u16,
    /// The last epoch that arrived on each connection.
    pub(super) epochs: BTreeMap<u64, u16>,
    pub(super) is_granted: bool,
    /// A notification that arrived, on another connection, before the response that grants the
    /// first rights.
    pub(super) early: Option<Notified>,
    /// Tick since which cached data are valid; `None` without READ_CACHING.
    valid_since: Option<u64>,
    /// Requests in flight that change the data of the file under this holder.
    changing: u32,
    /// Tick at which the last such request started or ended.
    changed_at: u64,
    cells: BTreeMap<u32, Stamp>,
    /// The cached listing of a directory.
    listing: Option<Listing>,
    pub(crate) delayed: VecDeque<Delayed>,
    /// The delayed write that is in flight.
    pub(crate) flushing: Option<Delayed>,
}

impl Holder {
    /// Returns a holder without rights. Its first request is about to be sent.
    pub(crate) fn new(name: Option<Name>, machine: usize, owner: Option<usize>) -> Self {
        Self {
            name,
            owner,
            machine,
            path: String::new(),
            is_v2: false,
            key: None,
            members: BTreeMap::new(),
            rights: NONE,
            since: 0,
            breaking: None,
            acknowledging: 0,
            epoch: 0,
            epochs: BTreeMap::new(),
            is_granted: false,
            early: None,
            valid_since: None,
            changing: 0,
            changed_at: 0,
            cells: BTreeMap::new(),
            listing: None,
            delayed: VecDeque::new(),
            flushing: None,
        }
    }

    /// The epoch for the next request of the lease.
    pub(crate) fn epoch(&self) -> u16 {
        self.epoch
    }

    /// Returns whether the cache has data that the server does not have.
    pub(crate) fn is_dirty(&self) -> bool {
        self.flushing.is_some() || !self.delayed.is_empty()
    }

    /// Returns whether a CREATE of the holder is in flight.
    pub(crate) fn is_opening(&self) -> bool {
        self.members.values().any(|is_open| !is_open)
    }

    pub(super) fn is_lease(&self) -> bool {
        matches!(self.name, Some(Name::Lease(..)))
    }

    /// The rights that the server certainly has not taken away, as far as this client can know.
    pub(super) fn certain(&self, now: Instant) -> LeaseState {
        let is_late = |breaking: &Breaking| now >= breaking.since.after(CERTAIN);
        match self.breaking.as_ref().is_some_and(is_late) {
            true => NONE,
            false => self.rights,
        }
    }

    /// Sets the rights that the client has received.
    pub(super) fn receive(&mut self, rights: LeaseState, tick: u64) {
        if !self.rights.contains(rights) {
            self.since = tick;
        }
        self.rights = rights;
        self.note_reads(rights.contains(READ), tick);
    }

    /// Reads from the cache begin, continue, or end.
    pub(super) fn note_reads(&mut self, may_read: bool, tick: u64) {
        match may_read {
            true => _ = self.valid_since.get_or_insert(tick),
            false => {
                self.valid_since = None;
                self.cells.clear();
                self.listing = None;
            }
        }
    }

    /// Returns whether the client may cache another write.
    pub(crate) fn may_delay(&self, now: Instant) -> bool {
        let has_right = self.certain(now).contains(READ | WRITE);
        has_right && self.breaking.is_none() && self.changing == 0 && self.delayed.len() < 4
    }

    /// An application of the client writes, and the client delays the write.
    pub(crate) fn delay(&mut self, write: Delayed) {
        self.changed_at = write.at;
        self.delayed.push_back(write);
    }

    /// Returns the cached cells with delayed writes; nothing if the client may not read them.
    pub(crate) fn readable(&self, now: Instant) -> BTreeMap<u32, Stamp> {
        if self.valid_since.is_none() || !self.certain(now).contains(READ) {
            return BTreeMap::new();
        }
        let mut cells = self.cells.clone();
        for write in self.flushing.iter().chain(&self.delayed) {
            cells.extend(write.cells.clone().map(|cell| (cell, write.stamp)));
        }
        cells
    }

    /// A listing of the directory is complete: the cache takes it, unless the client lost the right
    /// after it sent the request.
    pub(crate) fn list(&mut self, listing: Listing) {
        let is_valid = self
            .valid_since
            .is_some_and(|since| since < listing.span.start);
        self.listing = is_valid.then_some(listing);
    }

    /// Returns the cached listing; `None` if the client may not use it.
    pub(crate) fn listing(&self, now: Instant) -> Option<&Listing> {
        let may_read = self.certain(now).contains(READ);
        self.listing.as_ref().filter(|_| may_read)
    }

    /// A READ of the cell returned: the cache takes the value, unless the client lost the right or
    /// changed the file after it sent the request.
    pub(crate) fn fill(&mut self, cell: u32, stamp: Stamp, span: Span) {
        let is_valid = self.valid_since.is_some_and(|since| since < span.start);
        if is_valid && self.changing == 0 && self.changed_at < span.start {
            self.cells.insert(cell, stamp);
        }
    }

    /// The client sends a request that changes the data.
    pub(crate) fn changes(&mut self, tick: u64) {
        self.changing += 1;
        self.changed_at = tick;
        self.cells.clear();
    }

    /// Such a request has ended.
    pub(crate) fn has_changed(&mut self, tick: u64) {
        self.changing = self.changing.saturating_sub(1);
        self.changed_at = tick;
    }

    /// A delayed write has ended: the cache takes its cells if the server has them.
    pub(crate) fn flushed(&mut self, write: &Delayed, is_certain: bool, tick: u64) {
        self.flushing = None;
        self.changed_at = tick;
        let is_valid = self.valid_since.is_some_and(|since| since < write.at);
        let may_keep = is_certain && is_valid && self.changing == 0;
        for cell in write.cells.clone() {
            match may_keep {
                true => _ = self.cells.insert(cell, write.stamp),
                false => _ = self.cells.remove(&cell),
            }
        }
    }
}
