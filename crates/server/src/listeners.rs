//! The table of the listeners of a running server.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::listening::Listening;
use crate::reserve::Wanted;

/// Identifies a listener. All workers use the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ListenerId(u64);

/// The listeners of all workers.
#[derive(Debug, Default)]
pub(crate) struct Listeners(Mutex<Table>);

/// The table of listeners.
#[derive(Debug, Default)]
pub(crate) struct Table {
    last: u64,
    pub(crate) entries: Vec<Entry>,
}

/// A listener of all workers.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) id: ListenerId,
    pub(crate) wanted: Wanted,
    pub(crate) address: SocketAddr,
    /// Each worker has a clone, and each connection of a QUIC listener.
    pub(crate) uses: Arc<()>,
    /// It refuses clients, and closes without connections. Only a QUIC listener.
    pub(crate) is_leaving: bool,
}

impl Listeners {
    /// The addresses that the server listens on.
    pub(crate) fn listening(&self) -> Vec<Listening> {
        let table = self.lock();
        let entries = table.entries.iter().filter(|entry| !entry.is_leaving);
        let listening = entries.map(|entry| Listening {
            address: entry.address,
            transport: entry.wanted.transport,
        });
        listening.collect()
    }

    /// The wanted addresses of all listeners, and the addresses that they have. Those that close
    /// when their connections end are among them.
    pub(crate) fn present(&self) -> Vec<(Wanted, SocketAddr)> {
        let table = self.lock();
        let entries = table.entries.iter();
        entries.map(|entry| (entry.wanted, entry.address)).collect()
    }

    /// The table, for a short time.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A number that no listener has.
    pub(crate) fn next(&self) -> ListenerId {
        let mut table = self.lock();
        table.last += 1;
        ListenerId(table.last)
    }
}
