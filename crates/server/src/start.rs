//! Starting and stopping a server.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use auth::UserFileError;
use net::{Endpoint, Transport, tls};
use proto::server::config as core;
use proto::time::{Instant as CoreInstant, Now};
use ring::{Io, Listener, PoolConfig, Receiver, Runtime, Sender, mailbox};
use tracing::{error, info, warn};
use wire::{FileTime, Guid};

use crate::accounts::Realms;
use crate::certificate::{self, Shown};
use crate::config::{Config, IoChoice, PlacementChoice, TransportSecurity, dialect};
use crate::datapath::answer_quota as answers;
use crate::gate::{Gate, GateLimits};
use crate::observer::Observer;
use crate::placement::Placement;
use crate::quic;
use crate::share::Shares;
use crate::smbdirect::{self, Direct};
use crate::store::MemoryStore;
use crate::unix_account::AccountError;
use crate::worker::{Devices, Message, Reach, Shared, Times, Worker};

/// Messages that may wait for a worker. More notices than there can be sessions at one time.
const MAILBOX_LIMIT: usize = 1 << 20;

/// Why a server does not start.
#[derive(Debug)]
pub enum StartError {
    /// A share's folder cannot be opened.
    Share {
        /// The share.
        name: String,
        /// Its folder.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A share's `force_user` is no account.
    Account {
        /// The share.
        share: String,
        /// Why.
        error: AccountError,
    },
    /// An address cannot be listened on.
    Listen {
        /// The address.
        address: SocketAddr,
        /// How frames would move.
        transport: Transport,
        /// Why.
        error: io::Error,
    },
    /// There is nobody to make connections over RDMA.
    Rdma(io::Error),
    /// The file of users cannot be used.
    Users(UserFileError),
    /// A certificate or key cannot be used.
    Certificate(tls::Error),
    /// QUIC cannot be set up.
    Quic(io::Error),
    /// The ring cannot be set up.
    Ring(io::Error),
    /// A thread cannot be started.
    Thread(io::Error),
}

impl StartError {
    pub(crate) fn share(name: &str, path: &Path, error: io::Error) -> Self {
        Self::Share {
            name: name.to_owned(),
            path: path.to_owned(),
            error,
        }
    }

    pub(crate) fn account(share: &str, error: AccountError) -> Self {
        Self::Account {
            share: share.to_owned(),
            error,
        }
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Share { name, path, error } => {
                write!(f, "share `{name}`: {}: {error}", path.display())
            }
            Self::Account { share, error } => write!(f, "share `{share}`: force_user: {error}"),
            Self::Listen {
                address,
                transport,
                error,
            } => {
                write!(f, "cannot listen on {address} ({transport}): {error}")?;
                if error.kind() == io::ErrorKind::PermissionDenied && address.port() < 1024 {
                    f.write_str("; ports below 1024 are root's: choose another, or run as root")?;
                }
                Ok(())
            }
            Self::Rdma(error) => write!(f, "rdma.provider: {error}"),
            Self::Users(error) => write!(f, "server.users: {error}"),
            Self::Certificate(error) => write!(f, "quic: {error}"),
            Self::Quic(error) => write!(f, "quic: {error}"),
            Self::Ring(error) => write!(f, "server.io: {error}"),
            Self::Thread(error) => write!(f, "cannot start a thread: {error}"),
        }
    }
}

impl std::error::Error for StartError {}

/// An address that a server listens on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listening {
    /// Where; a port of 0 in the configuration became a real one.
    pub address: SocketAddr,
    /// How frames move.
    pub transport: Transport,
}

/// A server that runs.
pub struct Server {
    listening: Vec<Listening>,
    mailboxes: Vec<Sender<Message>>,
    threads: Vec<JoinHandle<()>>,
    placement: Arc<Placement>,
    tls: Option<Arc<tls::Server>>,
    observer: Observer,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("listening", &self.listening)
            .finish_non_exhaustive()
    }
}

impl Server {
    /// Opens the shares, listens, and starts the workers. Sets the process's umask to 0, and its
    /// limit of descriptors to what the system allows.
    pub fn start(config: &Config, users: Realms) -> Result<Self, StartError> {
        // The permissions of new files are the share's matter, not those of who started us.
        rustix::process::umask(rustix::fs::Mode::empty());
        allow_descriptors();
        let shares = Shares::open(&config.shares)?;
        let tls = certificate::open(config).map_err(StartError::Certificate)?;
        let shared = Arc::new(shared(config, shares, users));
        let count = worker_count(config);
        let Reserved {
            listening,
            sockets: reserved,
            doors,
            direct,
        } = reserve(config, count)?;
        if let Some(provider) = &direct.provider {
            let listen = direct.listening().map(|there| there.address.ip());
            let _ = shared.reach.rdma.set(Devices {
                provider: Arc::clone(provider),
                listen: listen.collect(),
            });
        }
        shared.look_at_interfaces();
        let mut direct = Some(direct);
        let quic = match &tls {
            Some(tls) => Some(quic_server(tls, config.quic.settings())?),
            None => None,
        };
        let (mailboxes, receivers): (Vec<_>, Vec<_>) =
            (0..count).map(|_| mailbox(Some(MAILBOX_LIMIT))).unzip();
        let is_first = shared.mailboxes.set(mailboxes.clone()).is_ok();
        assert!(is_first, "a server is started once");
        shared.hear();
        let mut server = Self {
            observer: Observer::new(Arc::clone(&shared), listening.clone()),
            listening,
            mailboxes,
            threads: Vec::new(),
            placement: Arc::clone(&shared.placement),
            tls,
        };
        for (index, (mailbox, doors)) in receivers.into_iter().zip(doors).enumerate() {
            let doors = Doors {
                server: quic.clone(),
                sockets: doors,
                workers: count,
                direct: direct.take().unwrap_or_default(),
            };
            server.spawn(config, index, Arc::clone(&shared), mailbox, doors)?;
        }
        drop(reserved);
        Ok(server)
    }

    /// Where it listens.
    pub fn listening(&self) -> &[Listening] {
        &self.listening
    }

    /// The certificate that clients of QUIC see now; none where it does not listen for them.
    pub fn certificate(&self) -> Option<Shown> {
        self.tls.as_deref().map(Shown::of)
    }

    /// To look at it while it works.
    pub fn observer(&self) -> Observer {
        self.observer.clone()
    }

    /// How many connections each worker serves.
    pub fn connections(&self) -> Vec<usize> {
        self.placement.connections()
    }

    /// Takes nothing new, finishes what runs, and ends.
    pub fn stop(self) {
        for mailbox in &self.mailboxes {
            // A worker that is gone already has stopped.
            let _ = mailbox.send(Message::Stop);
        }
        for thread in self.threads {
            if thread.join().is_err() {
                error!("a worker panicked");
            }
        }
    }

    fn spawn(
        &mut self,
        config: &Config,
        index: usize,
        shared: Arc<Shared>,
        mailbox: Receiver<Message>,
        doors: Doors,
    ) -> Result<(), StartError> {
        let ring = ring_config(config);
        let bound = Arc::clone(&self.placement);
        let listening = self.listening.clone();
        let (ready, is_ready) = std::sync::mpsc::channel();
        let run = move || {
            let runtime = match Runtime::new(&ring) {
                Ok(runtime) => runtime,
                Err(error) => return drop(ready.send(Err(StartError::Ring(error)))),
            };
            bound.bind_worker(index);
            let listeners = match listen(&runtime, &listening) {
                Ok(listeners) => listeners,
                Err(error) => return drop(ready.send(Err(error))),
            };
            let (doors, direct) = match doors.open(&runtime, index) {
                Ok(doors) => doors,
                Err(error) => return drop(ready.send(Err(StartError::Quic(error)))),
            };
            let io = runtime.io();
            info!(worker = index, driver = ?io.driver, reason = %io.reason, "worker started");
            if ready.send(Ok(())).is_err() {
                return;
            }
            let worker = Worker::new(runtime.handle(), index, shared);
            runtime.block_on(worker.run(listeners, doors, direct, mailbox));
        };
        let thread = thread::Builder::new()
            .name(format!("worker-{index}"))
            .spawn(run);
        self.threads.push(thread.map_err(StartError::Thread)?);
        is_ready.recv().expect("a worker says how it started")
    }
}

/// What all workers share, before anything listens.
pub(crate) fn shared(config: &Config, shares: Shares, users: Realms) -> Shared {
    let started = Instant::now();
    let mut core = core_config(config, &shares);
    let names = users.names();
    core.name = names.netbios_computer.clone();
    core.domain = names.netbios_domain.clone();
    let core = proto::server::Server::new(core, start_time());
    Shared {
        core,
        shares,
        realms: users,
        gate: Gate::new(gate_limits(config)),
        times: times(config),
        answer_bytes: answers::limit(config.server.buffer_memory_mb << 20),
        smb_direct: config.smb_direct(),
        placement: placement(config),
        tcp: config.tcp.options(),
        reach: Reach {
            entries: config.interfaces(),
            listen: config.server.listen.clone(),
            rdma: std::sync::OnceLock::new(),
        },
        started,
        mailboxes: std::sync::OnceLock::new(),
        untold: 0.into(),
        store: Box::new(MemoryStore::default()),
    }
}

/// Every connection, open and folder is a descriptor, and the usual limit is 1,024. Programs that
/// `select` on descriptors need it that low; this one does not.
fn allow_descriptors() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = Rlimit {
        current: maximum,
        maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, wanted) {
        warn!(%error, limit = ?current, "the limit of descriptors stays as it is");
    }
}

/// What is bound before anything starts.
struct Reserved {
    listening: Vec<Listening>,
    /// Of TCP, bound and not listening.
    sockets: Vec<socket2::Socket>,
    /// Those of QUIC of each worker.
    doors: Vec<Vec<UdpSocket>>,
    /// Those of SMB Direct.
    direct: Direct,
}

/// Listens on every address once, so that port 0 becomes one port for all workers and an address
/// that is taken is found out before anything starts.
fn reserve(config: &Config, workers: usize) -> Result<Reserved, StartError> {
    let mut reserved = Reserved {
        listening: Vec::new(),
        sockets: Vec::new(),
        doors: (0..workers).map(|_| Vec::new()).collect(),
        direct: Direct::open(config)?,
    };
    let endpoints = config.endpoints().into_iter();
    for endpoint in endpoints.filter(|endpoint| endpoint.transport != Transport::SmbDirect) {
        for ip in &config.server.listen {
            let wanted = SocketAddr::new(*ip, endpoint.port);
            let failed = |error| StartError::Listen {
                address: wanted,
                transport: endpoint.transport,
                error,
            };
            let address = if endpoint.transport == Transport::Quic {
                let (address, sockets) = quic::bind(wanted, workers).map_err(failed)?;
                let doors = reserved.doors.iter_mut().zip(sockets);
                doors.for_each(|(doors, socket)| doors.push(socket));
                address
            } else {
                let (socket, address) = reserve_one(wanted).map_err(failed)?;
                reserved.sockets.push(socket);
                address
            };
            reserved.listening.push(Listening {
                address,
                transport: endpoint.transport,
            });
        }
    }
    reserved.listening.extend(reserved.direct.listening());
    Ok(reserved)
}

/// What a worker needs to serve QUIC and SMB Direct.
struct Doors {
    server: Option<Arc<net::quic::Server>>,
    sockets: Vec<UdpSocket>,
    workers: usize,
    direct: Direct,
}

impl Doors {
    fn open(
        self,
        runtime: &Runtime,
        index: usize,
    ) -> io::Result<(Vec<net::quic::Listener>, Direct)> {
        let Some(server) = self.server else {
            return Ok((Vec::new(), self.direct));
        };
        let number = |count: usize| u16::try_from(count).map_err(io::Error::other);
        let (index, workers) = (number(index)?, number(self.workers)?);
        let handle = runtime.handle();
        let open = |socket| net::quic::Listener::new(&handle, socket, &server, index, workers);
        let doors: io::Result<_> = self.sockets.into_iter().map(open).collect();
        Ok((doors?, self.direct))
    }
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

/// Binds without SO_REUSEPORT first: with it, two servers would share the port unnoticed.
fn reserve_one(address: SocketAddr) -> io::Result<(socket2::Socket, SocketAddr)> {
    use socket2::{Domain, Socket, Type};
    let bind = |reuse_port: bool, address: SocketAddr| {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
        socket.set_reuse_address(true)?;
        if address.is_ipv6() {
            socket.set_only_v6(true)?;
        }
        socket.set_reuse_port(reuse_port)?;
        socket.bind(&address.into())?;
        let bound = socket.local_addr()?.as_socket().expect("an IP socket");
        io::Result::Ok((socket, bound))
    };
    let (alone, bound) = bind(false, address)?;
    drop(alone);
    bind(true, bound)
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

fn worker_count(config: &Config) -> usize {
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
            total_bytes: config.server.buffer_memory_mb << 20,
            ..PoolConfig::default()
        },
        ..ring::Config::default()
    }
}

fn gate_limits(config: &Config) -> GateLimits {
    GateLimits {
        connections: config.limits.connections,
        half_open: config.limits.half_open,
        half_open_per_address: config.limits.half_open_per_address,
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
        transport_security: config.quic.transport_security == TransportSecurity::Accept,
        multichannel: config.server.multichannel,
        security_blob: auth::server_hint(),
        limits: core::Limits {
            credits: config.limits.credits,
            sessions_per_connection: config.limits.sessions_per_connection,
            channels_per_session: config.limits.channels_per_session,
            opens_per_session: config.limits.opens_per_session,
            frame_before_login: config.limits.frame_before_login,
            login_timeout: Duration::from_millis(config.limits.login_timeout_ms),
            ..core::Limits::default()
        },
        shares: shares.known.clone(),
        ..core::Config::default()
    }
}

/// The host's own name, for where the configuration has none.
pub(crate) fn host_name() -> String {
    let name = rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned();
    if name.is_empty() {
        "smbeam".to_owned()
    } else {
        name
    }
}

/// Opens what a server would open, and closes it again.
///
/// # Errors
/// What would keep the server from starting, but for addresses that are taken.
pub fn check(config: &Config) -> Result<(), StartError> {
    Shares::open(&config.shares)?;
    Realms::from_config(config).map_err(StartError::Users)?;
    certificate::check(config).map_err(StartError::Certificate)?;
    smbdirect::check(config)
}

/// An address that a client can use in place of "any": the one with which this host would speak
/// to the world, or loopback where it is alone.
pub fn reachable(ip: IpAddr) -> IpAddr {
    if !ip.is_unspecified() {
        return ip;
    }
    // Connecting a UDP socket sends nothing; 192.0.2.1 is nobody's (RFC 5737).
    let outward = UdpSocket::bind((ip, 0)).and_then(|socket| {
        socket.connect(("192.0.2.1", 9))?;
        socket.local_addr()
    });
    outward.map_or(IpAddr::from([127, 0, 0, 1]), |address| address.ip())
}
