//! The number of objects of a server, for statistics. Unlike a snapshot, it copies no table.

use crate::server::Server;
use crate::server::disconnected::DisconnectedTotals;

/// The numbers of objects of a server at nearly one time. The [`Ledger`](super::ledger::Ledger) has
/// those of opens, pipes, watches and locks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Number of sessions of all connections.
    pub sessions: usize,
    /// Number of leases of all clients.
    pub leases: usize,
    /// Number of open files without a session, which wait for their clients.
    pub disconnected: usize,
    /// Numbers of open files that were without a session, since the start of the server.
    pub disconnected_totals: DisconnectedTotals,
}

impl Server {
    /// Returns the numbers of objects. Locks one table after the other, for a short time.
    pub fn counts(&self) -> Counts {
        let sessions = self.sessions.lock().len();
        let leases = self.files.lease_count();
        let disconnected = self.disconnected.lock();
        Counts {
            sessions,
            leases,
            disconnected: disconnected.len(),
            disconnected_totals: disconnected.totals(),
        }
    }
}
