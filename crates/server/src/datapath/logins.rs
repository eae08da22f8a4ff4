//! The pending logins of one connection. The core limits their number.

use std::collections::BTreeMap;

use auth::Acceptor;
use proto::login::{AccountsRevision, ConversationId};

/// A login between two steps.
pub(super) struct Login {
    pub(super) acceptor: Acceptor,
    /// The version of the accounts that the acceptor uses.
    pub(super) revision: AccountsRevision,
}

/// The next step of a login.
pub(super) enum NextStep {
    /// The first one: no acceptor exists.
    First,
    /// A further one.
    Further(Login),
}

/// The pending logins of one connection.
#[derive(Default)]
pub(super) struct Logins {
    /// `None` while a step of the login runs.
    pending: BTreeMap<ConversationId, Option<Login>>,
}

impl Logins {
    /// Starts a step of a login, and takes its acceptor.
    ///
    /// # Panics
    /// A step of this login runs: the core starts one at a time.
    pub(super) fn begin_step(&mut self, conversation: ConversationId) -> NextStep {
        match self.pending.get_mut(&conversation) {
            Some(pending) => {
                let login = pending.take();
                NextStep::Further(login.expect("a login has one running step at most"))
            }
            None => {
                self.pending.insert(conversation, None);
                NextStep::First
            }
        }
    }

    /// Puts the acceptor back after a step, unless the login is over.
    pub(super) fn end_step(&mut self, conversation: ConversationId, login: Login) {
        if let Some(pending) = self.pending.get_mut(&conversation) {
            *pending = Some(login);
        }
    }

    /// Drops the state of a login that is over. A running step completes without effect.
    pub(super) fn end(&mut self, conversation: ConversationId) {
        self.pending.remove(&conversation);
    }
}
