//! The pending logins of one connection. The core limits their number.

use std::collections::BTreeMap;

use auth::Acceptor;
use proto::login::ConversationId;

/// The next step of a login.
pub(super) enum NextStep {
    /// The first one: no acceptor exists.
    First,
    /// A further one, with the acceptor of the step before.
    Further(Acceptor),
}

/// The pending logins of one connection.
#[derive(Default)]
pub(super) struct Logins {
    /// `None` while a step of the login runs.
    conversations: BTreeMap<ConversationId, Option<Acceptor>>,
}

impl Logins {
    /// Starts a step of a login, and takes its acceptor.
    ///
    /// # Panics
    /// A step of this login runs: the core starts one at a time.
    pub(super) fn begin_step(&mut self, conversation: ConversationId) -> NextStep {
        match self.conversations.get_mut(&conversation) {
            Some(acceptor) => {
                let acceptor = acceptor.take();
                NextStep::Further(acceptor.expect("a login has one running step at most"))
            }
            None => {
                self.conversations.insert(conversation, None);
                NextStep::First
            }
        }
    }

    /// Puts the acceptor back after a step, unless the login is over.
    pub(super) fn end_step(&mut self, conversation: ConversationId, acceptor: Acceptor) {
        if let Some(pending) = self.conversations.get_mut(&conversation) {
            *pending = Some(acceptor);
        }
    }

    /// Drops the state of a login that is over. A running step completes without effect.
    pub(super) fn end(&mut self, conversation: ConversationId) {
        self.conversations.remove(&conversation);
    }
}
