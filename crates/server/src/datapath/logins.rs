//! The pending logins of one connection.

use std::collections::BTreeMap;

use auth::Acceptor;
use proto::login::ConversationId;

/// Most pending logins of one connection. Clients have one; the excess is refused.
const MAX_CONVERSATIONS: usize = 32;

/// The pending logins of one connection.
#[derive(Default)]
pub(super) struct Logins {
    /// `None` while a step of the login runs.
    conversations: BTreeMap<ConversationId, Option<Acceptor>>,
}

impl Logins {
    /// Takes the acceptor of a login for its next step. The first step makes the acceptor. `None`
    /// if the connection has too many pending logins.
    ///
    /// # Panics
    /// A step of this login runs: the core starts one at a time.
    pub(super) fn begin_step(
        &mut self,
        conversation: ConversationId,
        new: impl FnOnce() -> Acceptor,
    ) -> Option<Acceptor> {
        if let Some(acceptor) = self.conversations.get_mut(&conversation) {
            let acceptor = acceptor.take();
            return Some(acceptor.expect("a login has one running step at most"));
        }
        if self.conversations.len() >= MAX_CONVERSATIONS {
            return None;
        }
        self.conversations.insert(conversation, None);
        Some(new())
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
