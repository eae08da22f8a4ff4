//! Starts and stops a server.

use std::fmt;
use std::io;
use std::net::UdpSocket;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use net::{Endpoint, Transport, tls};
use proto::server::config as core;
use proto::time::{Instant as CoreInstant, Now};
use ring::{Io, Listener, PoolConfig, Receiver, Runtime, Sender, mailbox};
use tracing::{error, info, warn};
use wire::security::Sid;
use wire::{FileTime, Guid};

use crate::accounts::Accounts;
use crate::certificate::{self, Shown};
use crate::config::{
    Config, IoChoice, PlacementChoice, ShareSection, SyncChoice, TransportSecurity, dialect,
};
use crate::datapath::answer_limit;
use crate::error::StartError;
use crate::gate::{Gate, GateLimits};
use crate::half_open::HalfOpenLimits;
use crate::listening::Listening;
use crate::login_attempts::{Lockout, LoginAttempts};
use crate::login_threads::LoginThreads;
use crate::memory;
use crate::message::Message;
use crate::metrics;
use crate::observer::Observer;
use crate::placement::Placement;
use crate::reserve::{Reserved, reserve};
use crate::share::Shares;
use crate::shared::{InterfaceConfig, RdmaDevices, Shared, Times};
use crate::sids::Sids;
use crate::smbdirect::{self, SmbDirectListeners};
use crate::store::MemoryStore;
use crate::worker::{Listeners, Worker};

/// Capacity of a worker's mailbox: more notices than there can be sessions at a time.
const MAILBOX_LIMIT: usize = 1 << 20;

/// A running server. Dropping it does not stop it: call [`stop`](Self::stop).
pub struct Server {
    listening: Vec<Listening>,
    mailboxes: Vec<Sender<Message>>,
    threads: Vec<JoinHandle<()>>,
    placement: Arc<Placement>,
    tls: Option<Arc<tls::Server>>,
    observer: Observer,
    shared: Arc<Shared>,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("listening", &self.listening)
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
        // The share decides about the permissions of new files, not the umask of the caller.
        rustix::process::umask(rustix::fs::Mode::empty());
        allow_descriptors();
        let sids = Arc::new(accounts.sids(config).map_err(StartError::SidMap)?);
        let known: Arc<dyn vfs::accounts::Accounts> = sids.clone();
        let shares = Shares::open(&config.shares, &known)?;
        log_unsynced(config);
        let shared = Arc::new(shared(config, shares, accounts, sids));
        let count = worker_count(config);
        let Reserved {
            listening,
            sockets: reserved,
            quic_sockets,
            smb_direct,
        } = reserve(config, count)?;
        // Last, because it may make a file: a server that does not start leaves nothing.
        let tls = certificate::open(config).map_err(StartError::Certificate)?;
        if let Some(provider) = &smb_direct.provider {
            let listen = smb_direct.listening().map(|on| on.address.ip());
            let _ = shared.interfaces.rdma.set(RdmaDevices {
                provider: Arc::clone(provider),
                listen: listen.collect(),
                known: std::sync::Mutex::default(),
            });
        }
        shared.refresh_interfaces();
        let mut smb_direct = Some(smb_direct);
        let quic = match &tls {
            Some(tls) => Some(quic_server(tls, config.quic.settings())?),
            None => None,
        };
        let (mailboxes, receivers): (Vec<_>, Vec<_>) =
            (0..count).map(|_| mailbox(Some(MAILBOX_LIMIT))).unzip();
        let is_first = shared.mailboxes.set(mailboxes.clone()).is_ok();
        assert!(is_first, "a server is started once");
        shared.watch_shares();
        let mut server = Self {
            observer: Observer::new(Arc::clone(&shared), listening.clone()),
            listening,
            mailboxes,
            threads: Vec::new(),
            placement: Arc::clone(&shared.placement),
            tls,
            shared: Arc::clone(&shared),
        };
        for (index, (mailbox, sockets)) in receivers.into_iter().zip(quic_sockets).enumerate() {
            let unopened = Unopened {
                listening: server.listening.clone(),
                quic_server: quic.clone(),
                quic_sockets: sockets,
                workers: count,
                smb_direct: smb_direct.take().unwrap_or_default(),
            };
            server.spawn(config, index, Arc::clone(&shared), mailbox, unopened)?;
        }
        drop(reserved);
        Ok(server)
    }

    /// Returns the addresses and ports that the server listens on.
    pub fn listening(&self) -> &[Listening] {
        &self.listening
    }

    /// Returns the certificate that QUIC clients receive now; `None` if the server does not listen
    /// for QUIC.
    pub fn certificate(&self) -> Option<Shown> {
        self.tls.as_deref().map(Shown::of)
    }

    /// Returns a handle that reads the status of the running server from any thread.
    pub fn observer(&self) -> Observer {
        self.observer.clone()
    }

    /// Returns the number of connections of each worker thread, in the order of the workers.
    pub fn connections(&self) -> Vec<usize> {
        self.placement.connections()
    }

    /// Reads the user file and the certificates again if they have changed, and looks up the groups
    /// of the users with sessions. Errors are logged, and the server continues with the old
    /// contents. The sessions of users that were removed or disabled or have another password end.
    /// May block on look-ups.
    pub fn reload(&self) {
        self.shared.refresh_groups();
        if let Some(tls) = &self.tls {
            tls.reload();
        }
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
    }

    fn spawn(
        &mut self,
        config: &Config,
        index: usize,
        shared: Arc<Shared>,
        mailbox: Receiver<Message>,
        unopened: Unopened,
    ) -> Result<(), StartError> {
        let ring = ring_config(config);
        let placement = Arc::clone(&self.placement);
        let (ready, is_ready) = std::sync::mpsc::channel();
        let run = move || {
            let runtime = match Runtime::new(&ring) {
                Ok(runtime) => runtime,
                Err(error) => return drop(ready.send(Err(StartError::Ring(error)))),
            };
            placement.bind_worker(index);
            let listeners = match unopened.open(&runtime, index) {
                Ok(listeners) => listeners,
                Err(error) => return drop(ready.send(Err(error))),
            };
            let io = runtime.io();
            info!(worker = index, driver = ?io.driver, reason = %io.reason, "worker started");
            if ready.send(Ok(())).is_err() {
                return;
            }
            let worker = Worker::new(runtime.handle(), index, shared);
            runtime.block_on(worker.run(listeners, mailbox));
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
    shares: Shares,
    accounts: Accounts,
    sids: Arc<Sids>,
) -> Shared {
    let started = Instant::now();
    let mut core = core_config(config, &shares);
    let names = accounts.names();
    core.name = names.netbios_computer.clone();
    core.domain = names.netbios_domain.clone();
    core.account_domain = Some(sids.local());
    let core = proto::server::Server::new(core, start_time());
    Shared {
        core,
        shares,
        accounts,
        sids,
        gate: Gate::new(gate_limits(config)),
        login_attempts: LoginAttempts::new(lockout(config)),
        login_threads: LoginThreads::default(),
        times: times(config),
        answer_bytes: answer_limit(pool_bytes(config)),
        memory_max: memory::limit(config.limits.memory_max_mb),
        smb_direct: config.smb_direct(),
        placement: placement(config),
        tcp: config.tcp.options(),
        interfaces: InterfaceConfig {
            entries: config.interfaces(),
            listen: config.listen_ips(),
            rdma: std::sync::OnceLock::new(),
        },
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

/// The listeners of one worker before its runtime exists.
struct Unopened {
    listening: Vec<Listening>,
    quic_server: Option<Arc<net::quic::Server>>,
    quic_sockets: Vec<UdpSocket>,
    /// Number of workers.
    workers: usize,
    smb_direct: SmbDirectListeners,
}

impl Unopened {
    /// Opens the listeners of the worker with this index, on its thread.
    fn open(self, runtime: &Runtime, index: usize) -> Result<Listeners, StartError> {
        let tcp = listen(runtime, &self.listening)?;
        let server = self.quic_server.as_ref();
        let quic = match server {
            Some(server) => open_quic(runtime, server, self.quic_sockets, index, self.workers),
            None => Ok(Vec::new()),
        };
        Ok(Listeners {
            tcp,
            quic: quic.map_err(StartError::Quic)?,
            smb_direct: self.smb_direct,
        })
    }
}

fn open_quic(
    runtime: &Runtime,
    server: &Arc<net::quic::Server>,
    sockets: Vec<UdpSocket>,
    index: usize,
    workers: usize,
) -> io::Result<Vec<net::quic::Listener>> {
    let number = |count: usize| u16::try_from(count).map_err(io::Error::other);
    let (index, workers) = (number(index)?, number(workers)?);
    let handle = runtime.handle();
    let open = |socket| net::quic::Listener::new(&handle, socket, server, index, workers);
    sockets.into_iter().map(open).collect()
}

fn quic_server(
    tls: &Arc<tls::Server>,
    settings: net::quic::Settings,
) -> Result<Arc<net::quic::Server>, StartError> {
    let reset_key = tls.reset_key();
    let tls = Arc::clone(tls);
    let certificates = Box::new(move || tls.config());
    net::quic::Server::new(settings, certificates, &reset_key).map_err(StartError::Quic)
}

fn listen(
    runtime: &Runtime,
    listening: &[Listening],
) -> Result<Vec<(Endpoint, Listener)>, StartError> {
    let handle = runtime.handle();
    let open = |listening: &Listening| {
        let Listening { address, transport } = *listening;
        let endpoint = Endpoint {
            transport,
            port: address.port(),
        };
        match Listener::bind(&handle, address, true) {
            Ok(listener) => Ok((endpoint, listener)),
            Err(error) => Err(StartError::Listen {
                address,
                transport,
                error,
            }),
        }
    };
    let streams = listening.iter();
    let is_stream = |transport| matches!(transport, Transport::Tcp | Transport::Nbt);
    let streams = streams.filter(|listening| is_stream(listening.transport));
    streams.map(open).collect()
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

fn gate_limits(config: &Config) -> GateLimits {
    GateLimits {
        connections: config.limits.connections,
        connections_per_prefix: config.limits.connections_per_address,
        half_open: HalfOpenLimits {
            total: config.limits.half_open,
            per_prefix: config.limits.half_open_per_address,
            memory: config.limits.half_open_memory_mb << 20,
        },
    }
}

fn lockout(config: &Config) -> Lockout {
    Lockout {
        threshold: config.security.lockout_threshold,
        duration: Duration::from_millis(config.security.lockout_duration_ms),
    }
}

fn times(config: &Config) -> Times {
    Times {
        failed_login_delay: Duration::from_millis(config.security.failed_login_delay_ms),
        frame_timeout: Duration::from_millis(config.limits.frame_timeout_ms),
        shutdown_grace: Duration::from_millis(config.limits.shutdown_ms),
    }
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

fn core_config(config: &Config, shares: &Shares) -> core::Config {
    let mut guid = [0; 16];
    getrandom::fill(&mut guid).expect("the kernel has random bytes");
    let dialect_of = |name: &str| dialect(name).expect("checked when the file was read");
    core::Config {
        guid: Guid(guid),
        min_dialect: dialect_of(config.security.min_dialect.get_ref()),
        max_dialect: dialect_of(config.security.max_dialect.get_ref()),
        comment: config.server.comment.clone(),
        signing_required: config.security.signing_required,
        encryption_required: config.security.encryption_required,
        gmac_channels: config.security.gmac_channels.into(),
        transport_security: config.quic.transport_security == TransportSecurity::Accept,
        multichannel: config.server.multichannel,
        security_blob: auth::server_hint(),
        max_read: config.limits.max_read,
        max_write: config.limits.max_write,
        max_transact: config.limits.max_transact,
        limits: core::Limits {
            credits: config.limits.credits,
            sessions_per_connection: config.limits.sessions_per_connection,
            channels_per_session: config.limits.channels_per_session,
            opens_per_session: config.limits.opens_per_session,
            logins_per_connection: config.limits.logins_per_connection,
            connections_per_user: config.limits.connections_per_user,
            opens_per_user: config.limits.opens_per_user,
            pipes_per_user: config.limits.pipes_per_user,
            watches_per_user: config.limits.watches_per_user,
            locks_per_user: config.limits.locks_per_user,
            leases_per_client: config.limits.leases_per_client,
            leases: config.limits.leases,
            oplock_break_timeout: Duration::from_millis(config.limits.break_timeout_ms),
            disconnected_opens: config.limits.disconnected_opens,
            disconnected_opens_per_user: config.limits.disconnected_opens_per_user,
            durable_timeout_max: Duration::from_secs(config.limits.durable_timeout_max),
            response_bytes: config.limits.response_memory_mb << 20,
            frame_before_login: config.limits.frame_before_login,
            login_timeout: Duration::from_millis(config.limits.login_timeout_ms),
            ..core::Limits::default()
        },
        shares: shares.known.clone(),
        ..core::Config::default()
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
    metrics::load_token(&config.metrics)?;
    smbdirect::check(config)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proto::server::config::SyncPolicy;

    use super::*;

    #[test]
    fn the_core_gets_the_sizes_and_the_sync_of_the_configuration() {
        let text = "[limits]\nmax_read = 65536\nmax_write = 131072\nmax_transact = 1048576\n\
            [[share]]\nname = \"data\"\npath = \"/\"\nsync = \"always\"\n";
        let config = Config::parse(Path::new("smbeam.toml"), text).expect("a good file");
        let known: Arc<dyn vfs::accounts::Accounts> = Arc::new(vfs::accounts::UnixAccounts);
        let shares = Shares::open(&config.shares, &known).expect("the root directory");
        let core = core_config(&config, &shares);
        let sizes = [core.max_read, core.max_write, core.max_transact];
        assert_eq!(sizes, [65_536, 131_072, 1_048_576]);
        assert_eq!(core.shares[1].sync, SyncPolicy::Always);
    }
}
