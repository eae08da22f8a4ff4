//! The state that all workers share.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Instant, SystemTime};

use auth::{AcceptorConfig, ChangedLogins};
use net::Transport;
use proto::file::ShareId;
use proto::id::ConnectionId;
use proto::login::{AccountsRevision, LoginScope};
use proto::notice::Notice;
use proto::server;
use proto::time::{self, Now};
use rdma::{Network, Provider};
use ring::{SendError, Sender};
use tracing::{debug, info, warn};

use crate::accounts::Accounts;
use crate::audit::Audit;
use crate::certificate::Certificates;
use crate::connection_id;
use crate::counters::WorkerCounters;
use crate::gate::Gate;
use crate::inherited::InheritedSockets;
use crate::interfaces;
use crate::last_use::LastUse;
use crate::listeners::Listeners;
use crate::live::{Interfaces, LiveCell};
use crate::log::UNLIMITED;
use crate::login_attempts::LoginAttempts;
use crate::login_threads::LoginThreads;
use crate::message::Message;
use crate::placement::Placement;
use crate::sids::Sids;
use crate::store::Store;
use crate::unix_account;

/// Repeated events between two log lines about them.
pub(crate) const EVENTS_PER_LOG_LINE: u64 = 100;

/// The state that all workers share.
pub(crate) struct Shared {
    pub(crate) core: Arc<server::Server>,
    pub(crate) listeners: Listeners,
    /// The sockets of the service manager.
    pub(crate) inherited: Arc<InheritedSockets>,
    /// The certificates for QUIC.
    pub(crate) certificates: Certificates,
    /// The part of the configuration that changes.
    pub(crate) live: LiveCell,
    pub(crate) accounts: Accounts,
    pub(crate) audit: Audit,
    /// The last uses of app passwords.
    pub(crate) last_use: LastUse,
    /// The SIDs and names of all accounts.
    pub(crate) sids: Arc<Sids>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) login_attempts: LoginAttempts,
    pub(crate) login_threads: LoginThreads,
    /// Bytes of pool buffers that the responses of one connection may take.
    pub(crate) answer_bytes: usize,
    /// Most bytes of I/O buffers of each worker.
    pub(crate) pool_bytes: usize,
    pub(crate) placement: Arc<Placement>,
    /// The RDMA devices. Unset if the server does not listen for SMB Direct.
    pub(crate) rdma: OnceLock<RdmaDevices>,
    /// Time in seconds since 1970 at which the configuration in effect was read.
    pub(crate) configured: AtomicU64,
    /// Zero of the core's clock.
    pub(crate) started: Instant,
    /// The mailbox of each worker. Set before the first worker starts.
    pub(crate) mailboxes: OnceLock<Vec<Sender<Message>>>,
    /// Number of messages that were dropped because a mailbox was full.
    pub(crate) dropped_messages: AtomicU64,
    /// Records of the core that survive a crash.
    pub(crate) store: Box<dyn Store>,
    /// The counters of each worker.
    pub(crate) counters: Vec<Arc<WorkerCounters>>,
}

/// The RDMA devices that listen for SMB Direct.
#[derive(Debug)]
pub(crate) struct RdmaDevices {
    pub(crate) provider: Arc<dyn Provider>,
    /// The last list of the addresses of devices.
    pub(crate) known: Mutex<Vec<(IpAddr, Network)>>,
}

impl RdmaDevices {
    /// Lists the devices again. Returns the addresses of devices that listen on an address of
    /// `listen`, which may be unspecified; devices that leave their port to TCP are not included.
    fn refresh(&self, listen: &[IpAddr]) -> std::io::Result<Vec<IpAddr>> {
        let found = self.provider.addresses()?;
        let all: Vec<IpAddr> = found.iter().map(|(ip, _)| *ip).collect();
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = found;
        Ok(interfaces::listening(all.into_iter(), listen))
    }

    /// The network of the device with an address of this machine, by the last list. Without a
    /// device of this address, the network of all devices if it is the same.
    pub(crate) fn network(&self, address: IpAddr) -> Option<Network> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let of_address = known.iter().find(|(ip, _)| *ip == address);
        let (_, first) = of_address.or(known.first())?;
        let is_same = |(_, network): &(IpAddr, Network)| network == first;
        (of_address.is_some() || known.iter().all(is_same)).then_some(*first)
    }
}

impl Shared {
    /// Reads the network interfaces again and passes the list to the core. It may block, because it
    /// asks the RDMA devices.
    pub(crate) fn refresh_interfaces(&self) {
        let live = self.live.latest();
        let Interfaces { entries, listen } = &live.interfaces;
        let listening = self.listeners.listening().into_iter();
        let rdma_listen = listening
            .filter(|on| on.transport == Transport::SmbDirect)
            .map(|on| on.address.ip());
        let rdma_listen: Vec<IpAddr> = rdma_listen.collect();
        let rdma = self.rdma.get();
        let rdma = rdma.map_or(Ok(Vec::new()), |devices| devices.refresh(&rdma_listen));
        let rdma = rdma.unwrap_or_else(|error| {
            warn!(%error, "cannot list the RDMA devices: clients see no RDMA interfaces");
            Vec::new()
        });
        match interfaces::list(entries, listen, &rdma) {
            Ok(interfaces) => self.core.set_interfaces(&interfaces),
            Err(error) => {
                warn!(%error, "cannot list the network interfaces: clients see the previous list");
            }
        }
    }

    /// The accounts that may log in now. Reads the user file if it has changed, and ends the
    /// sessions of changed accounts. It may block.
    pub(crate) fn current_accounts(&self) -> (Arc<AcceptorConfig>, AccountsRevision) {
        self.accounts
            .current(|logins, revision| self.end_logins(logins, revision))
    }

    /// Ends the sessions of these logins, if they are before this version of the accounts.
    pub(crate) fn end_logins(&self, logins: &ChangedLogins, revision: AccountsRevision) {
        let ChangedLogins {
            account: user,
            app_password,
            change,
        } = logins;
        let scope = match app_password {
            Some(password) => LoginScope::AppPassword(user, password),
            None => LoginScope::Account(user),
        };
        let notices = self.core.end_account(scope, revision);
        let connections = notices.len();
        if connections > 0 {
            info!(
                name: UNLIMITED,
                user, app_password, %change, connections, "ending the sessions of a user"
            );
        }
        self.notify_all(notices);
    }

    /// Sends the notices of a change that ends sessions, tree connects or opens. Opens that
    /// outlived a session end, too.
    pub(crate) fn notify_all(&self, notices: Vec<(ConnectionId, Notice)>) {
        for (connection, notice) in notices {
            self.notify(connection, notice);
        }
        self.arm_server_timer();
    }

    /// Looks up the groups of the users with sessions. Files that they open later and their later
    /// tree connects have the new groups. It may block, because it asks the system for each user.
    pub(crate) fn refresh_groups(&self) {
        let (accounts, _) = self.current_accounts();
        for name in self.core.account_names() {
            let Some(account) = accounts.users.find(&name) else {
                continue;
            };
            let unix = account.unix.as_deref().unwrap_or(&account.name);
            match unix_account::identity(unix) {
                Ok((token, groups)) => {
                    let groups = self.accounts.groups(&name, groups);
                    let sessions = self.core.set_account_groups(&name, &token, &groups);
                    if sessions > 0 {
                        info!(user = %name, sessions, "the groups of a user have changed");
                    }
                }
                // The directory server may not answer: this is no reason to end sessions.
                Err(error) => {
                    warn!(user = %name, %error, "the sessions of a user keep their groups");
                }
            }
        }
    }

    /// Notes that the configuration has been read and applied.
    pub(crate) fn note_configured(&self) {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let seconds = since.map_or(0, |since| since.as_secs());
        self.configured.store(seconds, Ordering::Relaxed);
    }

    /// Current time, in the form that the core takes.
    pub(crate) fn now(&self) -> Now {
        let wall = SystemTime::now();
        let since = wall
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        let seconds = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
        Now {
            instant: time::Instant(self.started.elapsed()),
            wall: wire::FileTime::from_unix(seconds, since.subsec_nanos()),
        }
    }

    /// Starts to forward the changes that local processes make in these shares to the connections
    /// that wait for them. The file systems hold no strong reference to the server.
    pub(crate) fn watch_shares(self: &Arc<Self>, opened: &[ShareId]) {
        let shared = Arc::downgrade(self);
        self.live
            .latest()
            .shares
            .listen(opened, move |share, events| {
                if let Some(shared) = shared.upgrade() {
                    let notices = shared.core.local_events(shared.now(), share, events);
                    for (connection, notice) in notices {
                        shared.notify(connection, notice);
                    }
                }
            });
    }

    pub(crate) fn mailboxes(&self) -> &[Sender<Message>] {
        let mailboxes = self.mailboxes.get();
        mailboxes.expect("set before the first connection")
    }

    /// Sends a notice to a connection of any worker. It goes through the mailbox also to a
    /// connection of the calling worker: a connection never runs inside a call of another one.
    pub(crate) fn notify(&self, connection: ConnectionId, notice: Notice) {
        let worker = connection_id::worker_of(connection);
        self.send(worker, Message::Notice(connection, notice));
    }

    /// Notifies the driver of the server that its next time-out may be earlier than before.
    pub(crate) fn arm_server_timer(&self) {
        self.send(0, Message::ArmServerTimer);
    }

    /// Sends a message to each worker.
    pub(crate) fn send_all(&self, message: impl Fn() -> Message) {
        for worker in 0..self.mailboxes().len() {
            self.send(worker, message());
        }
    }

    /// Releases the directories and addresses of a former configuration that are not in use any
    /// more.
    pub(crate) fn release_former(&self) {
        if self.live.prune() {
            self.send_all(|| Message::Reconfigured);
        }
        self.close_idle_listeners();
    }

    /// Sends a message to a worker. If its mailbox is full, the message is dropped and counted.
    pub(crate) fn send(&self, worker: usize, message: Message) {
        match self.mailboxes()[worker].send(message) {
            Ok(()) => {}
            Err(SendError::Full(_)) => {
                let dropped = self.dropped_messages.fetch_add(1, Ordering::Relaxed);
                if dropped.is_multiple_of(EVENTS_PER_LOG_LINE) {
                    let dropped = dropped + 1;
                    warn!(
                        worker,
                        dropped, "the mailbox of the worker is full: dropping clients or notices"
                    );
                }
            }
            Err(SendError::Closed(_)) => debug!(worker, "dropping a message: the worker has ended"),
        }
    }
}
