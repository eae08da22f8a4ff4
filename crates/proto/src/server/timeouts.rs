//! Timeouts and operations of the server itself: those that belong to no connection.
//!
//! One driver thread runs them. It calls [`Server::timeout`] once [`Server::next_timeout`] has
//! passed, performs the effects, and completes their operations with [`Server::complete`]. A call
//! into a connection may make the next timeout earlier; it then requests
//! [`Effect::ArmServerTimer`], and the thread of that connection notifies the driver of the server.
//!
//! The server requests [`Effect::File`] and [`Effect::Notify`]. Its driver performs
//! [`Effect::Store`] too, for state that must survive a restart.

use alloc::sync::Arc;

use crate::effect::{Effect, Effects, Outcome};
use crate::id::OpId;
use crate::server::open::Open;
use crate::server::operations::Operations;
use crate::server::session::Session;
use crate::server::{Server, close};
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

    /// Processes the outcome of the operation `op`, which an effect of [`timeout`](Self::timeout)
    /// requested. Appends no effects. The I/O driver calls this once for each of these operations.
    ///
    /// # Panics
    ///
    /// The operation is not in progress.
    pub fn complete(&self, _now: Now, op: OpId, outcome: Outcome, _effects: &mut Effects) {
        let was_pending = self.operations.lock().closing.remove(&op);
        assert!(was_pending, "{op:?} of the server is not in progress");
        // The open is closed, even if its file could not be deleted.
        drop(outcome);
    }

    /// Returns whether the server itself has no operation in progress, and no open file that
    /// outlives its session.
    pub fn is_idle(&self) -> bool {
        self.operations.lock().closing.is_empty() && self.disconnected.lock().is_empty()
    }

    fn close(&self, now: Now, open: &Arc<Open>, effects: &mut Effects) {
        let mut operations = self.operations.lock();
        let Operations { op_ids, closing } = &mut *operations;
        closing.extend(close::abandon(self, now, open, op_ids, effects));
    }

    /// Takes over an open of a session that lost its last connection. Returns false if the caller
    /// must close the open: the policy keeps no disconnected opens, or their table is full.
    pub(crate) fn take_over(
        &self,
        now: Now,
        session: &Session,
        open: &Arc<Open>,
        effects: &mut Effects,
    ) -> bool {
        let limits = &self.config.limits;
        if limits.disconnected_open_timeout.is_zero() {
            return false;
        }
        let deadline = now.instant.after(limits.disconnected_open_timeout);
        let account = session.state.lock().account.clone();
        let (owner, limit) = (account.name.clone(), limits.disconnected_opens);
        let has_space = (self.disconnected.lock()).insert(deadline, open, owner, limit);
        if !has_space {
            return false;
        }
        // The account may have ended after the session lost its connection.
        if self.is_outdated(&account) {
            self.disconnected.lock().expire_of(&account.name);
        }
        let mut notices = self.watches.end(open.file);
        self.files.end_oplock(open.key, open.file, &mut notices);
        self.post(notices, effects);
        effects.push(Effect::ArmServerTimer);
        true
    }
}
