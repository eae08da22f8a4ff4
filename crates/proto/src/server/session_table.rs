//! The sessions of a server. \[MS-SMB2\] 3.3.1.5, GlobalSessionTable

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;

use wire::{Guid, SessionId};

use super::session::Session;

/// The sessions of a server, by their ids and by their clients.
#[derive(Debug, Default)]
pub(crate) struct SessionTable {
    sessions: BTreeMap<SessionId, Arc<Session>>,
    /// The sessions of each ClientGuid.
    of_clients: BTreeMap<Guid, BTreeSet<SessionId>>,
}

impl SessionTable {
    /// Returns a session.
    pub(crate) fn get(&self, id: SessionId) -> Option<&Arc<Session>> {
        self.sessions.get(&id)
    }

    /// Returns all sessions.
    pub(crate) fn values(&self) -> impl Iterator<Item = &Arc<Session>> {
        self.sessions.values()
    }

    /// Returns the number of sessions.
    pub(crate) fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Adds a session.
    pub(crate) fn insert(&mut self, session: Arc<Session>) {
        let of_client = self.of_clients.entry(session.origin.client_guid);
        of_client.or_default().insert(session.id);
        self.sessions.insert(session.id, session);
    }

    /// Removes a session.
    pub(crate) fn remove(&mut self, id: SessionId) {
        let Some(session) = self.sessions.remove(&id) else {
            return;
        };
        let client = session.origin.client_guid;
        if let Some(of_client) = self.of_clients.get_mut(&client) {
            of_client.remove(&id);
            if of_client.is_empty() {
                self.of_clients.remove(&client);
            }
        }
    }

    /// Returns the sessions of a client.
    pub(crate) fn of_client(&self, client: Guid) -> impl Iterator<Item = &Arc<Session>> {
        let ids = self.of_clients.get(&client).into_iter().flatten();
        ids.filter_map(|id| self.sessions.get(id))
    }
}
