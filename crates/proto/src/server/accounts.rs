//! Accounts that change while sessions of their users exist.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::id::ConnectionId;
use crate::login::{Account, AccountsRevision, LoginScope};
use crate::notice::Notice;
use crate::server::Server;
use crate::server::session::Session;
use crate::token::Token;

impl Server {
    /// Ends the sessions of these logins with a version of the accounts before `revision`, and
    /// closes their opens. The driver calls this when an account was removed or disabled, when its
    /// password was changed, or when an app password was removed or expired, before any login uses
    /// `revision`. Logins in progress with an earlier version fail. The names in `scope` are those
    /// in [`Account`], in the same case.
    ///
    /// Disconnected opens of the account end, too, whichever password made them.
    ///
    /// No request of these sessions starts after the call. Returns a notice for each of their
    /// connections, which the driver must deliver: the connection then closes the opens. The driver
    /// also calls [`next_timeout`](Self::next_timeout) again, for opens that outlived a session.
    pub fn end_account(
        &self,
        scope: LoginScope<'_>,
        revision: AccountsRevision,
    ) -> Vec<(ConnectionId, Notice)> {
        let (LoginScope::Account(name) | LoginScope::AppPassword(name, _)) = scope;
        self.account_changes.lock().note(scope, revision);
        self.disconnected.lock().give_up_of(name);
        let sessions = self.named_sessions().into_iter();
        let of_account = sessions.filter(|session| {
            let account = &session.state.lock().account;
            scope.has(account) && account.revision < revision
        });
        of_account
            .flat_map(|session| self.close_session(&session))
            .collect()
    }

    /// Changes the identity and the groups of the sessions of the account `name`: for their file
    /// operations on files that they open later, and for their later tree connects. The driver
    /// calls this when the groups of the user have changed. Returns the number of sessions that had
    /// another identity or other groups.
    pub fn set_account_groups(
        &self,
        name: &str,
        token: &Arc<Token>,
        groups: &Arc<[String]>,
    ) -> usize {
        let sessions = self.named_sessions().into_iter();
        let changed = sessions.filter(|session| {
            let account = &mut session.state.lock().account;
            let is_other = account.token != *token || account.groups != *groups;
            let is_changed = account.name == name && is_other;
            if is_changed {
                account.token = token.clone();
                account.groups = groups.clone();
            }
            is_changed
        });
        changed.count()
    }

    /// Returns the names of the accounts with sessions, except guests and anonymous users.
    pub fn account_names(&self) -> BTreeSet<String> {
        let sessions = self.named_sessions().into_iter();
        sessions
            .map(|session| session.state.lock().account.name.clone())
            .collect()
    }

    /// Returns true if a login of the account was in progress when the account changed.
    pub(crate) fn is_outdated(&self, account: &Account) -> bool {
        self.account_changes.lock().is_outdated(account)
    }

    /// Ends a session. Returns the notices for its connections; none if it has ended before.
    pub(crate) fn close_session(&self, session: &Arc<Session>) -> Vec<(ConnectionId, Notice)> {
        let connections = session.channels.end().into_iter();
        self.refuse_requests(session);
        let notice = |connection| (connection, Notice::SessionClosed(session.id));
        connections.map(notice).collect()
    }

    /// Refuses further requests of a session.
    pub(crate) fn refuse_requests(&self, session: &Arc<Session>) {
        let mut state = session.state.lock();
        let is_first = !core::mem::replace(&mut state.is_closed, true);
        let leaves_opens = state.leaves_opens;
        drop(state);
        // Before the session leaves its table, so that a reconnect finds it in one of both.
        if is_first && leaves_opens {
            self.disconnected.lock().begin(session);
        }
        self.sessions.lock().remove(session.id);
        session.trees.lock().clear();
    }

    fn named_sessions(&self) -> Vec<Arc<Session>> {
        let sessions: Vec<_> = self.sessions.lock().values().cloned().collect();
        let is_named = |session: &Arc<Session>| session.state.lock().is_named();
        sessions.into_iter().filter(is_named).collect()
    }
}
