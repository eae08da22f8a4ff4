//! Timeouts and operations of the server itself: those that belong to no connection.
//!
//! One driver thread runs them. It calls [`Server::timeout`] once [`Server::next_timeout`] has
//! passed, performs the effects, and completes their operations with [`Server::complete`]. A call
//! into a connection may make the next timeout earlier; it then requests
//! [`Effect::ArmServerTimer`], and the thread of that connection notifies the driver of the server.
//!
//! The server requests [`Effect::File`], [`Effect::Notify`] and [`Effect::Audit`]. Its driver
//! performs [`Effect::Store`] too, for state that must survive a restart.

use alloc::sync::Arc;
use alloc::vec::Vec;

use wire::FileId;
use wire::create_context::LeaseState;

use crate::effect::{Effect, Effects, Outcome};
use crate::id::OpId;
use crate::notice::{CachingBreak, LeaseBreak};
use crate::server::Server;
use crate::server::durability::Durability;
use crate::server::fsa::caching::{HolderId, LeaseId};
use crate::server::ledger::Resource;
use crate::server::notices::Notices;
use crate::server::open::Open;
use crate::server::operations::Pending;
use crate::server::session::Session;
use crate::time::{Instant, Now};

impl Server {
    /// Returns the time at which the I/O driver must call [`timeout`](Self::timeout) at the latest;
    /// `None` if no open file outlives its session.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.disconnected.lock().next_deadline()
    }

    /// Closes open files that have outlived their session up to the time limit: appends a close
    /// operation for each. The I/O driver passes the outcomes to [`complete`](Self::complete). It
    /// calls this function at the time that [`next_timeout`](Self::next_timeout) returns. An early
    /// call has no effect.
    pub fn timeout(&self, now: Now, effects: &mut Effects) {
        let expired = self.disconnected.lock().take_expired(now.instant);
        expired
            .iter()
            .for_each(|open| self.close(now, open, effects));
    }

    /// Processes the outcome of the operation `op`, which an earlier effect of the server
    /// requested. Appends the effects that follow it. The I/O driver calls this once for each of
    /// these operations.
    ///
    /// # Panics
    ///
    /// The operation is not in progress.
    pub fn complete(&self, now: Now, op: OpId, outcome: Outcome, effects: &mut Effects) {
        let pending = self.operations.lock().pending.remove(&op);
        match pending {
            // The open is closed in any case.
            Some(Pending::Close) => drop(outcome),
            Some(Pending::Unlink(unlinked)) => {
                let removal = outcome.expect_file().map(drop);
                self.unlinked(now, *unlinked, removal, effects);
            }
            None => panic!("{op:?} of the server is not in progress"),
        }
    }

    /// Returns whether the server itself has no operation in progress, and no open file that
    /// outlives its session.
    pub fn is_idle(&self) -> bool {
        self.operations.lock().pending.is_empty() && self.disconnected.lock().len() == 0
    }

    /// Takes over an open of a session that has ended. Returns false if the caller must close the
    /// open: it is not durable, a break of its caching rights is in progress, or a limit is
    /// reached. \[MS-SMB2\] 3.3.7.1
    pub(crate) fn keep(
        &self,
        now: Now,
        session: &Session,
        open: &Arc<Open>,
        effects: &mut Effects,
    ) -> bool {
        let durability = open.state.lock().durability;
        let Some(timeout) = durability.timeout() else {
            return false;
        };
        let owner = open.owner();
        let Ok(charge) = owner.charge(Resource::DisconnectedOpens, 1) else {
            return false;
        };
        let id = open.id.persistent;
        let limit = self.settings().limits.disconnected_opens;
        {
            let mut disconnected = self.disconnected.lock();
            if disconnected.len() >= limit {
                return false;
            }
            disconnected.insert(open, now.instant.after(timeout), charge);
        }
        // After the insertion: either this check finds a break in progress, or the break finds the
        // open in the table.
        if !self.may_outlive(session, open, effects) {
            return self.disconnected.lock().remove(id).is_none();
        }
        // The account may have ended after the session did.
        let account = session.state.lock().account.clone();
        if self.is_outdated(&account) {
            self.disconnected.lock().give_up_of(owner.name());
        }
        // The share may have been removed.
        if !self.has_share(&open.share) {
            self.disconnected.lock().give_up(id);
        }
        open.state.lock().enumeration = None;
        self.post(self.watches.end(open.file), effects);
        effects.push(Effect::ArmServerTimer);
        true
    }

    /// Whether the caching rights and locks of an open permit that it outlives its session.
    fn may_outlive(&self, session: &Session, open: &Open, effects: &mut Effects) -> bool {
        let durability = open.state.lock().durability;
        let rights = self.files.unbroken_rights(open.key, open.file);
        if rights.is_none() && matches!(durability, Durability::Resilient { .. }) {
            self.end_break(session, open, effects);
        }
        let has_locks = open.locks.count_of(open.file) > 0;
        durability.survives_with(rights.unwrap_or(LeaseState::NONE), has_locks)
    }

    /// Whether a break concerns disconnected opens only: no session of the client has an open that
    /// the break concerns.
    pub(crate) fn is_disconnected(&self, caching_break: &CachingBreak) -> bool {
        if self.disconnected.lock().len() == 0 {
            return false;
        }
        let opens = self.concerned(caching_break);
        let disconnected = self.disconnected.lock();
        opens
            .iter()
            .all(|open| disconnected.get(open.persistent).is_some())
    }

    /// No client can acknowledge the break of a disconnected open: a durable one ends, as soon as
    /// the driver calls [`timeout`](Self::timeout); a resilient one loses its caching rights at
    /// once, also those of a lease, and the requests that wait for the break continue.
    ///
    /// \[MS-SMB2\] 3.3.4.6 demands that for an oplock. For a lease, 3.3.4.7 has the break run to
    /// its time limit and then ends with the same state: no connection can receive the notification
    /// or send an acknowledgment meanwhile. Where the client reconnects during the break, the
    /// response contains the state of the lease.
    pub(crate) fn break_disconnected(&self, caching_break: &CachingBreak, effects: &mut Effects) {
        for file_id in self.concerned(caching_break) {
            let id = file_id.persistent;
            let Some(open) = self.disconnected.lock().get(id) else {
                continue;
            };
            let durability = open.state.lock().durability;
            if matches!(durability, Durability::Resilient { .. }) {
                self.end_rights(&open, effects);
            } else if self.disconnected.lock().give_up(id) {
                effects.push(Effect::ArmServerTimer);
            }
        }
    }

    /// The opens that a break concerns.
    fn concerned(&self, caching_break: &CachingBreak) -> Vec<FileId> {
        match caching_break.lease {
            None => Vec::from([caching_break.file_id]),
            Some(LeaseBreak { client, key, .. }) => {
                let targets = self.files.targets_of_lease(LeaseId { client, key });
                targets.into_iter().map(|target| target.file_id).collect()
            }
        }
    }

    /// Ends the break of the caching rights of a resilient open that loses its session. The break
    /// of a lease continues if another session of the client has an open of the lease: it can
    /// acknowledge the break.
    fn end_break(&self, session: &Session, open: &Open, effects: &mut Effects) {
        let holder = self.files.holder(open.key, open.file);
        let lease = holder.and_then(HolderId::lease);
        let opens = lease.map(|lease| self.files.targets_of_lease(lease));
        let disconnected = self.disconnected.lock();
        let has_other = opens.into_iter().flatten().any(|target| {
            let is_connected = disconnected.get(target.file_id.persistent).is_none();
            is_connected && target.session != session.id
        });
        drop(disconnected);
        if !has_other {
            self.end_rights(open, effects);
        }
    }

    fn end_rights(&self, open: &Open, effects: &mut Effects) {
        let mut notices = Notices::new();
        self.files.end_rights(open.key, open.file, &mut notices);
        self.post(notices, effects);
    }
}
