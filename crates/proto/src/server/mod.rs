//! The server's half of the protocol. \[MS-SMB2\] 3.3
//!
//! A [`Server`] is the shared state of all connections of a process; a [`Connection`] is a
//! transport connection, owned by one worker and never shared. Each command has a separate file.
//!
//! Locks, in the order in which they are taken: `Server::operations`, then `Server::sessions`, then
//! one session's tables (`trees`, `opens`, `pipes`, `channels`), then an open's or a pipe's `state`
//! or `sequence`, then an open's `lock_charge`, then `WatchTable`, then `FileTable`, then the
//! `FileLocks` of a file, then `ReplayTable`, `AppInstances`, `Server::interfaces` and the users of
//! the `Ledger`.
//! `Server::disconnected`, `Server::account_changes` and the `policies` of a pipe are held with no
//! other lock. No two of one rank are held at once, none across a call that can wait.

pub mod config;
pub mod fsa;
pub mod hosts;
pub mod ledger;
pub mod pipe;
pub mod share_users;

mod account_changes;
mod accounts;
mod administration;
mod app_instances;
mod audit;
mod audited_requests;
mod channel;
mod channel_sequence;
mod connection;
mod context;
mod counts;
mod disconnected;
mod durability;
mod ea;
mod gmac;
mod live;
mod lock_sequence;
mod negotiated;
mod notices;
mod notify;
mod op_ids;
mod open;
mod operations;
mod outstanding_request;
mod posix;
mod quota;
mod reconfigure;
mod replay;
mod session;
mod session_table;
mod sizes;
mod step;
mod timeouts;
mod tree;

mod change_notify;
mod close;
mod create;
mod echo;
mod flush;
mod ioctl;
mod lock;
mod logoff;
mod negotiate;
mod oplock_break;
mod query_directory;
mod query_info;
mod rdma_buffers;
mod read;
#[cfg(test)]
mod scripted;
mod session_setup;
mod set_info;
mod snapshot;
mod tree_connect;
mod tree_disconnect;
mod watch;
mod write;

pub use connection::{Connection, Load, Responses, Summary};
pub use counts::Counts;
pub use disconnected::DisconnectedTotals;
pub use gmac::GmacChannels;
pub use snapshot::{
    DisconnectedSnapshot, LockSnapshot, OpenKind, OpenSnapshot, SessionSnapshot, Snapshot,
    SnapshotLimits, TreeSnapshot,
};

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use spin::Mutex;
use wire::fsctl::NetworkInterface;
use wire::{FileId, FileTime};

use crate::file::{LocalEvent, ShareId};
use crate::id::ConnectionId;
use crate::notice::Notice;
use crate::time::Now;
use account_changes::AccountChanges;
use app_instances::AppInstances;
use config::Config;
use disconnected::DisconnectedOpens;
use fsa::FileTable;
use fsa::caching::ChangeTime;
use ledger::Ledger;
use live::Live;
use operations::Operations;
use replay::ReplayTable;
use session_table::SessionTable;
use watch::WatchTable;

/// Lower bound of the persistent half of a FileId: no volatile half reaches it, so that a client or
/// a log never confuses the two.
const PERSISTENT_BASE: u64 = 1 << 62;

/// The state of the server that all its connections in a process share: sessions, open files,
/// shares. \[MS-SMB2\] 3.3.1.5
#[derive(Debug)]
pub struct Server {
    pub(crate) live: Live,
    started: FileTime,
    /// GlobalSessionTable.
    pub(crate) sessions: Mutex<SessionTable>,
    /// Which files are open, and how: share modes, oplocks, locks and pending deletes.
    pub(crate) files: FileTable,
    /// Which directories are watched.
    pub(crate) watches: WatchTable,
    /// Which CREATEs may be replayed.
    pub(crate) replays: Arc<ReplayTable>,
    /// The opens of application instances.
    pub(crate) app_instances: Arc<AppInstances>,
    /// Where the server can be reached.
    pub(crate) interfaces: Mutex<Arc<[NetworkInterface]>>,
    /// The volatile half of the next FileId; never used twice in a process.
    next_file_id: AtomicU64,
    /// Opens that outlive their session.
    pub(crate) disconnected: Mutex<DisconnectedOpens>,
    /// Operations of the server itself.
    pub(crate) operations: Mutex<Operations>,
    /// The resources that users have.
    pub(crate) ledger: Arc<Ledger>,
    /// Changes of accounts, for logins in progress.
    pub(crate) account_changes: Mutex<AccountChanges>,
}

impl Server {
    /// Makes the state of a server with this configuration and without connections. `now` is its
    /// start time.
    pub fn new(config: Config, now: Now) -> Arc<Self> {
        Arc::new(Self {
            ledger: Ledger::new(&config.limits),
            live: Live::new(config),
            started: now.wall,
            sessions: Mutex::default(),
            files: FileTable::default(),
            watches: WatchTable::default(),
            replays: Arc::default(),
            app_instances: Arc::default(),
            interfaces: Mutex::new(Arc::from([])),
            next_file_id: AtomicU64::new(1),
            disconnected: Mutex::default(),
            operations: Mutex::default(),
            account_changes: Mutex::default(),
        })
    }

    /// Returns the FileId of a new open. \[MS-SMB2\] 2.2.14.1
    ///
    /// The persistent half identifies the open across sessions and restarts of the server. It
    /// starts at the start time of the server in units of 100 ns, so that another run of the server
    /// uses other numbers: no server opens 10 million files per second.
    pub(crate) fn new_file_id(&self) -> FileId {
        let volatile = self.next_file_id.fetch_add(1, Ordering::Relaxed);
        FileId {
            persistent: PERSISTENT_BASE + self.started.0 % PERSISTENT_BASE + volatile,
            volatile,
        }
    }

    /// Sets the network interfaces that the server reports to clients
    /// (FSCTL_QUERY_NETWORK_INTERFACE_INFO), so that they can connect further channels. The list
    /// replaces the previous one; it is empty at first.
    pub fn set_interfaces(&self, interfaces: &[NetworkInterface]) {
        *self.interfaces.lock() = Arc::from(interfaces);
    }

    /// Returns the ledger of the resources that users have.
    pub fn ledger(&self) -> &Arc<Ledger> {
        &self.ledger
    }

    /// Processes `events`: changes that other processes made in directories of the share `share`,
    /// in the order in which its file system reports them. Returns a notice for each waiting
    /// CHANGE_NOTIFY that the changes complete, and for each lease on a directory that they break,
    /// with the connection to which the caller must deliver it.
    pub fn local_events(
        &self,
        now: Now,
        share: ShareId,
        events: &[LocalEvent],
    ) -> Vec<(ConnectionId, Notice)> {
        let mut notices = self.watches.report_local(share, events);
        let time = self.change_time(now);
        let mut breaks = Vec::new();
        (self.files).changed_locally(share, events, time, &mut breaks);
        notices.extend(breaks.into_iter().filter_map(|notice| self.route(notice)));
        notices
    }

    /// The time of a change, and when a break that it begins ends at the latest.
    pub(crate) fn change_time(&self, now: Now) -> ChangeTime {
        let timeout = self.live.break_timeout();
        ChangeTime {
            now: now.instant,
            deadline: now.instant.after(timeout),
        }
    }

    /// Returns the wall-clock time at which the server started.
    pub fn started(&self) -> FileTime {
        self.started
    }
}
