//! The lease of an open file, and its durability.

use std::sync::Arc;
use std::time::Duration;

use wire::Guid;
use wire::create_context::LeaseState;

use crate::file::File;
use crate::io::leases::LeaseBreak;

/// Durable time of version 1, which the server does not report. Windows and Samba use 16 minutes
/// and one minute.
const DURABLE_V1: Duration = Duration::from_secs(60);

/// The caching that a server allows for a file now. \[MS-SMB2\] 2.2.14.2.11
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lease {
    /// The lease key: opens with the same key share the lease.
    pub key: Guid,
    /// The rights of the client: read, write and handle caching.
    pub state: LeaseState,
    /// Number of state changes of the lease modulo 65,536; 0 with dialect 2.1.
    pub epoch: u16,
}

impl File {
    /// Returns the lease that the server granted for the file: its state and its epoch at this
    /// moment. `None` if the open has no lease. Sends no request.
    ///
    /// All opens of a path in a session share a lease. The library caches no data by itself; a
    /// program above it can, as far as the lease allows that.
    pub fn lease(&self) -> Option<Lease> {
        if !self.share().session().dispatch().is_here() {
            return None;
        }
        let open = self.open_state();
        // An open that the server has closed protects nothing.
        let lease = open.lease.as_ref().filter(|_| open.file_id().is_ok())?;
        let record = lease.now();
        record.is_granted().then_some(Lease {
            key: lease.key,
            state: record.state,
            epoch: record.epoch,
        })
    }

    /// Calls `callback` when the server breaks the lease of the file: another client opens or
    /// changes it. The client acknowledges the break after the callback returns and the WRITEs in
    /// flight are done. Only then, or after about half a minute, the other client continues.
    ///
    /// The callback runs on a thread of the client that may block. It may use the file, for example
    /// to write back cached data. Without a callback the client acknowledges at once.
    ///
    /// It is also called when the lease ends because the server has closed the file after a loss of
    /// all connections. Then it may not wait for the file.
    ///
    /// A file without a lease never calls it. Callbacks last as long as an open of the path in this
    /// session, and each call of this function adds one. A callback that holds a clone of the file
    /// keeps the file open until [`close`](Self::close).
    pub fn on_lease_break(&self, callback: impl Fn(LeaseBreak) + Send + Sync + 'static) {
        if let Some(lease) = &self.open_state().lease {
            lease.on_break(Arc::new(callback));
        }
    }

    /// Returns the time for which the server preserves the open after a loss of all connections.
    /// `None` if the open is not durable: the server refused that, or the options do not request
    /// it. A server of dialect 2.x does not report the time; the result is 60 seconds then.
    pub fn durable_timeout(&self) -> Option<Duration> {
        let grant = self.open_state().durable()?;
        Some(match grant.timeout_ms {
            0 => DURABLE_V1,
            timeout => Duration::from_millis(timeout.into()),
        })
    }
}
