//! The change of the configuration of a running server.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use wire::TreeId;
use wire::upcase::is_same_name;

use crate::id::ConnectionId;
use crate::notice::Notice;
use crate::server::Server;
use crate::server::config::{Config, Share};
use crate::server::tree::TreeConnect;

impl Server {
    /// Returns a copy of the current configuration.
    pub fn config(&self) -> Config {
        Config {
            shares: self.shares().to_vec(),
            ..(*self.settings()).clone()
        }
    }

    /// Replaces the configuration of the running server. The ServerGuid must stay the same, because
    /// clients compare it between connections. A [`ShareId`](crate::file::ShareId) belongs to one
    /// file system: a share with another directory has another id.
    ///
    /// - Connections keep the limits and the sizes of requests with which they began. The limits of
    ///   users count for them, too.
    /// - Logins that complete later have the new requirements on signing and encryption.
    /// - A share that has no share of its name in the new list is removed: its tree connects end,
    ///   and their opens are closed. Other tree connects of the same sessions stay.
    /// - A share that changes applies to later tree connects. Present ones keep the share with
    ///   which they began, with its directory and its rights. The driver breaks the leases on
    ///   directories that the change ends, by [`local_events`](Self::local_events).
    ///
    /// Returns a notice for each ended tree connect, which the driver must deliver: the connection
    /// then closes the opens. The driver also calls [`next_timeout`](Self::next_timeout) again, for
    /// opens that outlived a session.
    pub fn reconfigure(&self, config: Config) -> Vec<(ConnectionId, Notice)> {
        assert_eq!(
            config.guid,
            self.settings().guid,
            "a server keeps its ServerGuid"
        );
        self.ledger.set_limits(&config.limits);
        self.live.replace(config);
        // After the replacement: TREE_CONNECT enters the tree before it looks for the share again.
        let mut notices = Vec::new();
        let sessions: Vec<_> = self.sessions.lock().values().cloned().collect();
        for session in sessions {
            let removed = self.take_removed(&mut session.trees.lock());
            if removed.is_empty() {
                continue;
            }
            for connection in session.channels.alive() {
                let notice = |tree: &TreeId| Notice::TreeClosed(session.id, *tree);
                notices.extend(removed.iter().map(|tree| (connection, notice(tree))));
            }
        }
        let is_removed = |share: &Arc<Share>| !self.has_share(share);
        self.disconnected.lock().give_up_in(is_removed);
        notices
    }

    /// The configuration without its shares.
    pub(crate) fn settings(&self) -> Arc<Config> {
        self.live.settings()
    }

    /// The shares.
    pub(crate) fn shares(&self) -> Arc<[Arc<Share>]> {
        self.live.shares()
    }

    /// The share of a name, without regard to case.
    pub(crate) fn find_share(&self, name: &str) -> Option<Arc<Share>> {
        let shares = self.shares();
        let found = shares.iter().find(|share| is_same_name(&share.name, name));
        found.cloned()
    }

    /// Whether the server still has a share of this name. Its directory may be another one.
    pub(crate) fn has_share(&self, share: &Share) -> bool {
        let shares = self.shares();
        shares
            .iter()
            .any(|other| is_same_name(&other.name, &share.name))
    }

    /// Whether clients may have leases on directories of a share of a present tree connect: not if
    /// the share was replaced, or if another share has the same directories now.
    pub(crate) fn leases_directories(&self, share: &Share) -> bool {
        let shares = self.shares();
        let current = shares.iter().find(|current| current.id == share.id);
        current.is_some_and(|current| current.directory_leases)
    }

    /// Takes the trees of removed shares out of the table of a session.
    fn take_removed(&self, trees: &mut BTreeMap<TreeId, Arc<TreeConnect>>) -> Vec<TreeId> {
        let mut removed = Vec::new();
        trees.retain(|id, tree| {
            let is_served = self.has_share(&tree.share);
            if !is_served {
                removed.push(*id);
            }
            is_served
        });
        removed
    }
}
