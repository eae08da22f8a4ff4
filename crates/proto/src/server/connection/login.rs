//! Logins in progress, and the requests that wait for the end of a session. \[MS-SMB2\] 3.3.5.5

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crypto::PreauthHash;
use wire::SessionId;
use wire::dialect::SecurityMode;

use super::Connection;
use super::task::TaskId;
use crate::effect::{Effect, Effects, Outcome};
use crate::login::{Accepted, ConversationId};
use crate::server::session::Session;
use crate::time::{Instant, Now};

/// A login in progress. Its session is in no table before the login succeeds.
#[derive(Debug)]
pub(in crate::server) struct Login {
    pub(in crate::server) conversation: ConversationId,
    /// Session.PreauthIntegrityHashValue.
    pub(in crate::server) preauth: PreauthHash,
    /// Whether a leg is with the authenticator.
    pub(in crate::server) is_busy: bool,
    pub(in crate::server) purpose: Purpose,
}

/// The purpose of a login.
#[derive(Clone, Debug)]
pub(in crate::server) enum Purpose {
    /// A new session.
    New,
    /// Reauthentication of a session of this connection. Fails if the session ends meanwhile.
    Renewal,
    /// A binding of this connection to a session.
    Binding(Arc<Session>),
}

/// The state of a waiting leg of a login.
#[derive(Debug)]
pub(in crate::server) enum LoginStep {
    /// The authenticator has the token.
    Authenticate {
        security_mode: SecurityMode,
        previous: SessionId,
    },
    /// The login succeeded; the session that it replaces is being closed.
    Replace(Box<Accepted>, SecurityMode),
}

/// A LOGOFF that waits for the end of its session, or a login that waits for the end of the session
/// that it replaces.
/// \[MS-SMB2\] 3.3.5.5.3, 3.3.5.6
#[derive(Debug)]
struct AwaitedSession {
    session: SessionId,
    task: TaskId,
    deadline: Option<Instant>,
}

/// The logins of one connection, and its requests that wait for the end of a session.
#[derive(Debug)]
pub(in crate::server) struct Logins {
    /// Logins in progress, first ones and repeated ones, by the id of their session.
    pending: BTreeMap<SessionId, Login>,
    awaited: Vec<AwaitedSession>,
    /// When the connection ends unless it carries a session by then; `None` while it does.
    pub(in crate::server) deadline: Option<Instant>,
}

impl Logins {
    /// No login yet: one has to succeed before the deadline.
    pub(super) fn new(deadline: Instant) -> Self {
        Self {
            pending: BTreeMap::new(),
            awaited: Vec::new(),
            deadline: Some(deadline),
        }
    }

    /// The login of a session, if it is in progress.
    pub(in crate::server) fn get(&self, id: SessionId) -> Option<&Login> {
        self.pending.get(&id)
    }

    /// The same, to change it.
    pub(in crate::server) fn get_mut(&mut self, id: SessionId) -> Option<&mut Login> {
        self.pending.get_mut(&id)
    }

    /// Adds a login.
    pub(in crate::server) fn insert(&mut self, id: SessionId, login: Login) {
        self.pending.insert(id, login);
    }

    /// Number of logins in progress.
    pub(in crate::server) fn len(&self) -> usize {
        self.pending.len()
    }

    /// When a login or a wait for a session ends at the latest.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        let awaited = self.awaited.iter().filter_map(|awaited| awaited.deadline);
        awaited.chain(self.deadline).min()
    }
}

impl Connection {
    /// Makes a request wait for the end of a session, unless the session has already ended.
    pub(in crate::server) fn await_end(
        &mut self,
        session: &Session,
        task: TaskId,
        deadline: Option<Instant>,
    ) -> bool {
        let is_waiting = session.channels.await_end(self.id);
        if is_waiting {
            self.logins.awaited.push(AwaitedSession {
                session: session.id,
                task,
                deadline,
            });
        }
        is_waiting
    }

    /// Handles the notice that the opens of a session are closed.
    pub(super) fn session_gone(&mut self, now: Now, session: SessionId, effects: &mut Effects) {
        let is_meant = |awaited: &AwaitedSession| awaited.session == session;
        while let Some(index) = self.logins.awaited.iter().position(is_meant) {
            let awaited = self.logins.awaited.swap_remove(index);
            self.resume(now, awaited.task, Outcome::Woken, effects);
        }
    }

    /// Goes on with the logins that have waited for long enough: the other connection is stuck.
    pub(super) fn stop_waiting_for_replaced(&mut self, now: Now, effects: &mut Effects) {
        let is_due =
            |awaited: &AwaitedSession| awaited.deadline.is_some_and(|at| at <= now.instant);
        while let Some(index) = self.logins.awaited.iter().position(is_due) {
            let awaited = self.logins.awaited.swap_remove(index);
            self.resume(now, awaited.task, Outcome::Woken, effects);
        }
    }

    /// Goes on with every request that waits so: the connection ends.
    pub(super) fn end_waits_for_replaced(&mut self, now: Now, effects: &mut Effects) {
        while let Some(awaited) = self.logins.awaited.pop() {
            self.resume(now, awaited.task, Outcome::Woken, effects);
        }
    }

    /// Ends a login, successful or not.
    pub(in crate::server) fn end_login(
        &mut self,
        id: SessionId,
        effects: &mut Effects,
    ) -> Option<Login> {
        let login = self.logins.pending.remove(&id)?;
        effects.push(Effect::EndConversation(login.conversation));
        Some(login)
    }

    /// Ends all logins in progress.
    pub(super) fn end_logins(&mut self, effects: &mut Effects) {
        while let Some((_, login)) = self.logins.pending.pop_first() {
            effects.push(Effect::EndConversation(login.conversation));
        }
    }
}
