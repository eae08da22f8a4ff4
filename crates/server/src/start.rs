//! Starts and stops a server.

use std::fmt;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use proto::server::config as core;
use proto::time::{Instant as CoreInstant, Now};
use ring::{Io, PoolConfig, Receiver, Runtime, Sender, mailbox};
use tracing::{error, info, warn};
use wire::security::Sid;
use wire::{FileTime, Guid};

use crate::accounts::Accounts;
use crate::administrator::Administrator;
use crate::audit::{self, Audit};
use crate::certificate::{self, Certificates, Shown};
use crate::config::{Config, IoChoice, PlacementChoice, ShareSection, SyncChoice};
use crate::core_config::{core_config, gate_limits, lockout};
use crate::datapath::answer_limit;
use crate::error::StartError;
use crate::gate::Gate;
use crate::inherited::InheritedSockets;
use crate::last_use::LastUse;
use crate::listeners::Listeners;
use crate::listening::Listening;
use crate::live::{Live, LiveCell};
use crate::login_attempts::LoginAttempts;
use crate::login_threads::LoginThreads;
use crate::memory;
use crate::message::Message;
use crate::metrics;
use crate::observer::{self, Observer};
use crate::placement::Placement;
use crate::reload::Reloader;
use crate::reserve::{Present, reserve};
use crate::share::{Changed, Shares};
use crate::shared::Shared;
use crate::sids::Sids;
use crate::smbdirect;
use crate::store::MemoryStore;
use crate::worker::Worker;

/// Capacity of a worker's mailbox: more notices than there can be sessions at a time.
const MAILBOX_LIMIT: usize = 1 << 20;

/// A running server. Dropping it does not stop it: call [`stop`](Self::stop).
pub struct Server {
    mailboxes: Vec<Sender<Message>>,
    threads: Vec<JoinHandle<()>>,
    observer: Observer,
    reloader: Reloader,
    shared: Arc<Shared>,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("listening", &self.listening())
            .finish_non_exhaustive()
    }
}

impl Server {
    /// Starts a server with a checked configuration: opens the shares, listens, and starts the
    /// worker threads. `accounts` are the accounts that may log in. Returns when the server accepts
    /// connections. Sets the umask of the process to 0, and its limit of open descriptors to the
    /// maximum. A missing directory of a share is only a warning in the log.
    ///
    /// # Errors
    /// A share is not a directory, or a certificate, an address, a device or a thread cannot be
    /// opened or started.
    pub fn start(config: &Config, accounts: Accounts) -> Result<Self, StartError> {
        Self::start_with(config, accounts, InheritedSockets::default())
    }

    /// As [`start`](Self::start), with listening sockets of a service manager.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_with(
        config: &Config,
        accounts: Accounts,
        inherited: InheritedSockets,
    ) -> Result<Self, StartError> {
        // The share decides about the permissions of new files, not the umask of the caller.
        rustix::process::umask(rustix::fs::Mode::empty());
        allow_descriptors();
        let sids = Arc::new(accounts.sids(config).map_err(StartError::SidMap)?);
        let known: Arc<dyn vfs::accounts::Accounts> = sids.clone();
        let shares = Shares::open(&config.shares, &known)?;
        log_unsynced(config);
        let opened = shares.opened.clone();
        let shared = Arc::new(shared(config, shares, accounts, sids, inherited));
        let output = shared.audit.open(&config.audit);
        let output = output.map_err(|error| StartError::audit(&config.audit, error))?;
        shared.audit.replace(output);
        shared.live.latest().shares.select_audit(config);
        let count = worker_count(config);
        let present = Present {
            inherited: Arc::clone(&shared.inherited),
            ..Present::default()
        };
        let reservation = reserve(config, count, &present)?;
        let (mailboxes, receivers): (Vec<_>, Vec<_>) =
            (0..count).map(|_| mailbox(Some(MAILBOX_LIMIT))).unzip();
        let is_first = shared.mailboxes.set(mailboxes.clone()).is_ok();
        assert!(is_first, "a server is started once");
        let reloader = Reloader::new(Arc::clone(&shared), config);
        let mut server = Self {
            observer: Observer::new(Arc::clone(&shared)),
            reloader,
            mailboxes,
            threads: Vec::new(),
            shared: Arc::clone(&shared),
        };
        for (index, mailbox) in receivers.into_iter().enumerate() {
            server.spawn(config, index, Arc::clone(&shared), mailbox)?;
        }
        // Before the first client: a watch that starts earlier would not receive local changes. The
        // addresses of RDMA devices follow once the server listens on them.
        shared.watch_shares(&opened);
        shared.refresh_interfaces();
        // Last, because it may make a file: a server that does not start leaves nothing.
        if let Err(error) = server.reloader.listen(config, reservation) {
            server.stop();
            return Err(error);
        }
        let used: Vec<_> = server.listening().iter().map(|it| it.address).collect();
        shared.inherited.log_unused(&used);
        shared.refresh_interfaces();
        Ok(server)
    }

    /// Returns the addresses and ports that the server listens on.
    pub fn listening(&self) -> Vec<Listening> {
        self.shared.listeners.listening()
    }

    /// Returns the certificate that QUIC clients receive now; `None` if the server does not listen
    /// for QUIC.
    pub fn certificate(&self) -> Option<Shown> {
        let tls = self.shared.certificates.current()?;
        Some(Shown::of(&tls))
    }

    /// Returns a handle that reads the status of the running server from any thread.
    pub fn observer(&self) -> Observer {
        self.observer.clone()
    }

    /// Returns a handle that changes the configuration of the running server from any thread.
    pub fn reloader(&self) -> Reloader {
        self.reloader.clone()
    }

    /// Returns a handle that ends sessions and opens of the running server, and disables shares.
    pub fn administrator(&self) -> Administrator {
        Administrator::new(Arc::clone(&self.shared), self.reloader.clone())
    }

    /// Returns the number of connections of each worker thread, in the order of the workers.
    pub fn connections(&self) -> Vec<usize> {
        self.shared.placement.connections()
    }

    /// Stops the server: it accepts no more connections and requests, and finishes the running
    /// operations. Returns when all worker threads have ended. After `limits.shutdown_ms` of the
    /// configuration they no longer wait for running operations.
    pub fn stop(self) {
        for mailbox in &self.mailboxes {
            // It fails if the worker has stopped already.
            let _ = mailbox.send(Message::Stop);
        }
        for thread in self.threads {
            if thread.join().is_err() {
                error!("a worker has panicked: its connections are lost");
            }
        }
        let Shared {
            last_use, accounts, ..
        } = &*self.shared;
        last_use.write_if_due(&accounts.users(), true);
        // After the last events of the workers.
        self.shared.audit.replace(None);
    }

    fn spawn(
        &mut self,
        config: &Config,
        index: usize,
        shared: Arc<Shared>,
        mailbox: Receiver<Message>,
    ) -> Result<(), StartError> {
        let ring = ring_config(config);
        let placement = Arc::clone(&shared.placement);
        let (ready, is_ready) = std::sync::mpsc::channel();
        let run = move || {
            let runtime = match Runtime::new(&ring) {
                Ok(runtime) => runtime,
                Err(error) => return drop(ready.send(Err(StartError::Ring(error)))),
            };
            placement.bind_worker(index);
            let io = runtime.io();
            info!(worker = index, driver = ?io.driver, reason = %io.reason, "worker started");
            if ready.send(Ok(())).is_err() {
                return;
            }
            let worker = Worker::new(runtime.handle(), index, shared);
            runtime.block_on(worker.run(mailbox));
        };
        let thread = thread::Builder::new()
            .name(format!("worker-{index}"))
            .spawn(run);
        self.threads.push(thread.map_err(StartError::Thread)?);
        is_ready.recv().expect("a worker reports how it started")
    }
}

/// Logs the shares on which clients cannot put data on stable storage.
fn log_unsynced(config: &Config) {
    let is_unsynced = |share: &&ShareSection| share.sync == SyncChoice::Client;
    for share in config.shares.iter().filter(is_unsynced) {
        let share = share.name.get_ref();
        info!(
            share,
            "sync = \"client\": FLUSH and write-through have no effect"
        );
    }
}

/// Makes the state that all workers share. The server does not listen yet.
pub(crate) fn shared(
    config: &Config,
    shares: Changed,
    accounts: Accounts,
    sids: Arc<Sids>,
    inherited: InheritedSockets,
) -> Shared {
    let started = Instant::now();
    let mut guid = [0; 16];
    getrandom::fill(&mut guid).expect("the kernel has random bytes");
    let names = accounts.names();
    let first = core::Config {
        guid: Guid(guid),
        name: names.netbios_computer.clone(),
        domain: names.netbios_domain.clone(),
        account_domain: Some(sids.local()),
        ..core::Config::default()
    };
    let core = core_config(config, shares.known, first);
    let core = proto::server::Server::new(core, start_time());
    Shared {
        core,
        live: LiveCell::new(Live::new(config, shares.shares, Vec::new())),
        listeners: Listeners::default(),
        inherited: Arc::new(inherited),
        certificates: Certificates::default(),
        accounts,
        last_use: LastUse::load(&config.state_directory()),
        audit: Audit::default(),
        sids,
        gate: Gate::new(gate_limits(config)),
        login_attempts: LoginAttempts::new(lockout(config)),
        login_threads: LoginThreads::default(),
        answer_bytes: answer_limit(pool_bytes(config)),
        pool_bytes: pool_bytes(config),
        placement: placement(config),
        rdma: std::sync::OnceLock::new(),
        configured: observer::seconds(SystemTime::now()).into(),
        started,
        mailboxes: std::sync::OnceLock::new(),
        dropped_messages: 0.into(),
        store: Box::new(MemoryStore::default()),
        counters: (0..worker_count(config)).map(|_| Arc::default()).collect(),
    }
}

/// Raises the limit of open descriptors to the maximum. Every connection, open and directory needs
/// a descriptor, and the usual limit is 1,024 for programs that use select(2).
fn allow_descriptors() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = Rlimit {
        current: maximum,
        maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, wanted) {
        warn!(%error, limit = ?current, "cannot raise the limit of open descriptors");
    }
}

pub(crate) fn worker_count(config: &Config) -> usize {
    match *config.server.workers.get_ref() {
        0 => thread::available_parallelism().map_or(1, std::num::NonZero::get),
        count => count,
    }
}

fn placement(config: &Config) -> Arc<Placement> {
    let workers = worker_count(config);
    match config.tcp.placement {
        PlacementChoice::Fewest => Placement::new(workers),
        PlacementChoice::IncomingCpu => Placement::near_packets(workers),
    }
}

fn ring_config(config: &Config) -> ring::Config {
    ring::Config {
        io: match config.server.io {
            IoChoice::Auto => Io::Auto,
            IoChoice::Uring => Io::Uring,
            IoChoice::Epoll => Io::Epoll,
        },
        buffers: PoolConfig {
            total_bytes: pool_bytes(config),
            ..PoolConfig::default()
        },
        blocking_threads: *config.server.blocking_threads.get_ref(),
        ..ring::Config::default()
    }
}

/// Bytes of the buffer pool of each worker.
fn pool_bytes(config: &Config) -> usize {
    let limit = memory::limit(config.limits.memory_max_mb);
    let configured = config.server.buffer_memory_mb << 20;
    memory::pool_bytes(configured, limit, worker_count(config))
}

fn start_time() -> Now {
    let since = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    let seconds = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
    Now {
        instant: CoreInstant(Duration::ZERO),
        wall: FileTime::from_unix(seconds, since.subsec_nanos()),
    }
}

/// Checks whether a server with this configuration can start: opens shares, user file, certificates
/// and RDMA devices, and closes them again. Does not listen on addresses. A missing directory of a
/// share is only a warning in the log.
///
/// # Errors
/// The reason why a server with this configuration does not start.
pub fn check(config: &Config) -> Result<(), StartError> {
    let accounts = Accounts::from_config(config).map_err(StartError::Users)?;
    // The check makes no file: any SID of the server will do.
    let sids = accounts.sids_with(config, Sid::NULL);
    let known: Arc<dyn vfs::accounts::Accounts> = Arc::new(sids.map_err(StartError::SidMap)?);
    Shares::open(&config.shares, &known)?;
    certificate::check(config).map_err(StartError::Certificate)?;
    audit::check(&config.audit).map_err(|error| StartError::audit(&config.audit, error))?;
    metrics::load_token(&config.metrics)?;
    smbdirect::check(config)
}
