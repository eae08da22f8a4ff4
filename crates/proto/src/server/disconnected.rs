//! Durable opens that outlive their session. \[MS-SMB2\] 3.3.7.1
//!
//! A session that loses its last connection leaves its durable opens to the server: the client may
//! reconnect to them. A disconnected open keeps its share modes, byte-range locks, caching rights
//! and its delete on close. No client can acknowledge a break of its rights, so a break ends the
//! open. The server closes it at its deadline.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;

use wire::SessionId;

use crate::notice::Notice;
use crate::server::config::Share;
use crate::server::ledger::Charge;
use crate::server::notices::{Notices, Waiter};
use crate::server::open::Open;
use crate::server::session::Session;
use crate::time::Instant;

/// The disconnected opens of a server. An open is identified by the persistent half of its FileId.
#[derive(Debug, Default)]
pub(crate) struct DisconnectedOpens {
    opens: BTreeMap<u64, Disconnected>,
    /// Sessions that have ended and leave their durable opens to the server, until no request acts
    /// on these opens any more.
    ending: BTreeMap<SessionId, Arc<Session>>,
    /// Reconnects that wait for the end of a session.
    waiting: Vec<(SessionId, Waiter)>,
    /// The opens in the order of their deadlines.
    deadlines: BTreeSet<(Instant, u64)>,
    totals: DisconnectedTotals,
}

/// A disconnected open.
#[derive(Debug)]
pub(crate) struct Disconnected {
    pub(crate) open: Arc<Open>,
    /// When the server closes it.
    pub(crate) deadline: Instant,
    /// Counts the open for its user.
    charge: Charge,
}

/// Numbers of durable open files that lost their session, since the start of the server, by the
/// way in which that ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DisconnectedTotals {
    /// Number of open files to which a client reconnected.
    pub reclaimed: u64,
    /// Number of open files that the server closed at their deadline.
    pub expired: u64,
    /// Number of open files that the server closed before: another client needed the file, the
    /// account of the user ended, or the share was removed.
    pub given_up: u64,
}

impl DisconnectedOpens {
    /// Returns the number of disconnected opens.
    pub(crate) fn len(&self) -> usize {
        self.opens.len()
    }

    /// Returns the numbers of opens that left the table.
    pub(crate) fn totals(&self) -> DisconnectedTotals {
        self.totals
    }

    /// Returns the disconnected opens, the first deadline first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Disconnected> {
        let ids = self.deadlines.iter();
        ids.filter_map(|(_, id)| self.opens.get(id))
    }

    /// Notes that a session ends and that its durable opens will follow.
    pub(crate) fn begin(&mut self, session: &Arc<Session>) {
        self.ending.insert(session.id, session.clone());
    }

    /// The opens of a session are closed or in this table. Appends the notices that wake waiting
    /// reconnects.
    pub(crate) fn finish(&mut self, session: SessionId, notices: &mut Notices) {
        if self.ending.remove(&session).is_some() {
            let waiting = self
                .waiting
                .extract_if(.., |(awaited, _)| *awaited == session);
            let wake = |waiter: Waiter| (waiter.connection, Notice::CachingBroken(waiter.op));
            notices.extend(waiting.map(|(_, waiter)| wake(waiter)));
        }
    }

    /// Returns the sessions with opens that will follow.
    pub(crate) fn ending(&self) -> Vec<Arc<Session>> {
        self.ending.values().cloned().collect()
    }

    /// Registers a reconnect that waits for the end of a session, if the limit permits one more.
    /// The caller then checks again that the session has the open, and withdraws the registration
    /// otherwise.
    pub(crate) fn wait(&mut self, session: SessionId, waiter: Waiter) -> bool {
        let may_wait = self.waiting.len() < WAITING_MAX;
        if may_wait {
            self.waiting.push((session, waiter));
        }
        may_wait
    }

    /// Withdraws a registration.
    pub(crate) fn forget(&mut self, waiter: Waiter) {
        self.waiting.retain(|(_, other)| *other != waiter);
    }

    /// Returns the earliest deadline.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let (deadline, _) = self.deadlines.first()?;
        Some(*deadline)
    }

    /// Removes and returns the opens with a deadline in the past.
    pub(crate) fn take_expired(&mut self, now: Instant) -> Vec<Arc<Open>> {
        let mut expired = Vec::new();
        while let Some(&(deadline, id)) = self.deadlines.first() {
            if deadline > now {
                break;
            }
            let removed = self.remove(id).expect("each deadline is that of an open");
            expired.push(removed);
            // Given up opens have been counted.
            self.totals.expired += u64::from(deadline > GIVEN_UP);
        }
        expired
    }

    /// Adds an open. `charge` counts it for its user.
    pub(crate) fn insert(&mut self, open: &Arc<Open>, deadline: Instant, charge: Charge) {
        let id = open.id.persistent;
        let disconnected = Disconnected {
            open: open.clone(),
            deadline,
            charge,
        };
        let previous = self.opens.insert(id, disconnected);
        assert!(previous.is_none(), "a persistent id belongs to one open");
        self.deadlines.insert((deadline, id));
    }

    /// Returns an open that has not reached its deadline.
    pub(crate) fn find(&self, id: u64, now: Instant) -> Option<Arc<Open>> {
        let found = self.opens.get(&id).filter(|found| found.deadline > now)?;
        Some(found.open.clone())
    }

    /// Returns an open.
    pub(crate) fn get(&self, id: u64) -> Option<Arc<Open>> {
        Some(self.opens.get(&id)?.open.clone())
    }

    /// Removes an open for its client, if it has not reached its deadline.
    pub(crate) fn reclaim(&mut self, id: u64, now: Instant) -> Option<Arc<Open>> {
        self.find(id, now)?;
        self.totals.reclaimed += 1;
        self.remove(id)
    }

    /// Removes an open.
    pub(crate) fn remove(&mut self, id: u64) -> Option<Arc<Open>> {
        let Disconnected { open, deadline, .. } = self.opens.remove(&id)?;
        self.deadlines.remove(&(deadline, id));
        Some(open)
    }

    /// Makes an open expire at once. Returns whether it is in the table.
    pub(crate) fn give_up(&mut self, id: u64) -> bool {
        let Some(found) = self.opens.get_mut(&id) else {
            return false;
        };
        let before = core::mem::replace(&mut found.deadline, GIVEN_UP);
        self.deadlines.remove(&(before, id));
        self.deadlines.insert((GIVEN_UP, id));
        self.totals.given_up += u64::from(before != GIVEN_UP);
        true
    }

    /// Makes all opens of an account expire at once.
    pub(crate) fn give_up_of(&mut self, owner: &str) {
        self.give_up_all(|found| found.charge.user().name() == owner);
    }

    /// Makes all opens of these shares expire at once.
    pub(crate) fn give_up_in(&mut self, is_meant: impl Fn(&Arc<Share>) -> bool) {
        self.give_up_all(|found| is_meant(&found.open.share));
    }

    fn give_up_all(&mut self, is_meant: impl Fn(&Disconnected) -> bool) {
        let opens = self.opens.iter();
        let meant = opens.filter(|(_, found)| is_meant(found));
        let ids: Vec<_> = meant.map(|(id, _)| *id).collect();
        for id in ids {
            self.give_up(id);
        }
    }
}

/// Maximum number of reconnects that wait. A further one finds no disconnected open.
const WAITING_MAX: usize = 65_536;

/// The deadline of an open that the server closes as soon as it can.
const GIVEN_UP: Instant = Instant(core::time::Duration::ZERO);
