//! Opens that outlive their session. \[MS-SMB2\] 3.3.7.1
//!
//! A session that loses its last connection may leave its opens to the server: the client may
//! reconnect. A disconnected open keeps its share modes and its byte-range locks, so that no other
//! client changes the file unnoticed. It loses its oplock, because the client cannot receive a
//! break, and its watch. The server closes it at its deadline.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::server::open::Open;
use crate::time::Instant;

/// The disconnected opens of a server, in the order of their deadlines. An open is identified by
/// the persistent half of its FileId.
#[derive(Debug, Default)]
pub(crate) struct DisconnectedOpens {
    opens: BTreeMap<(Instant, u64), Disconnected>,
}

/// A disconnected open.
#[derive(Debug)]
struct Disconnected {
    open: Arc<Open>,
    /// Name of the account of its session.
    owner: String,
}

impl DisconnectedOpens {
    /// Returns whether there is no disconnected open.
    pub(crate) fn is_empty(&self) -> bool {
        self.opens.is_empty()
    }

    /// Returns the earliest deadline.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let ((deadline, _), _) = self.opens.first_key_value()?;
        Some(*deadline)
    }

    /// Removes and returns the opens with a deadline in the past.
    pub(crate) fn take_expired(&mut self, now: Instant) -> Vec<Arc<Open>> {
        let mut expired = Vec::new();
        while let Some(first) = self.opens.first_entry() {
            if first.key().0 > now {
                break;
            }
            expired.push(first.remove().open);
        }
        expired
    }

    /// Adds an open of this account. Returns whether the table had space for it.
    pub(crate) fn insert(
        &mut self,
        deadline: Instant,
        open: &Arc<Open>,
        owner: String,
        limit: usize,
    ) -> bool {
        if self.opens.len() >= limit {
            return false;
        }
        let key = (deadline, open.id.persistent);
        let open = open.clone();
        let previous = self.opens.insert(key, Disconnected { open, owner });
        assert!(previous.is_none(), "a persistent id belongs to one open");
        true
    }

    /// Makes all opens of an account expire at once.
    pub(crate) fn expire_of(&mut self, owner: &str) {
        let is_of_owner =
            |(key, open): (&(Instant, u64), &Disconnected)| (open.owner == owner).then_some(*key);
        let keys: Vec<_> = self.opens.iter().filter_map(is_of_owner).collect();
        for key in keys {
            let open = self.opens.remove(&key).expect("it was just seen");
            self.opens.insert((Instant::default(), key.1), open);
        }
    }
}
