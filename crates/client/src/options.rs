//! The options of a client.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use auth::InitiatorProvider;
use crypto::{CIPHER_PREFERENCE, Cipher, SIGNING_PREFERENCE, SigningAlgorithm};
use net::quic::Settings as QuicSettings;
use net::tls::ClientSettings;
use net::{Endpoint, Endpoints, TcpOptions, Transport};
use proto::client::IO_MAX;
pub use proto::client::config::Protection;
use wire::dialect::Dialect;
use zeroize::Zeroizing;

/// Length of one request in bytes where neither the caller nor a transfer chooses another one.
pub const REQUEST_BYTES: u32 = 1 << 20;

/// The transports of the first connection to a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transports {
    /// Try these one after the other until one connects, each with
    /// [`Options::connect_timeout`]. A port that is given with the host replaces the port of the
    /// first one.
    InOrder(Endpoints),
    /// Connect by TCP, then query the server's network interfaces. If an interface supports RDMA
    /// and this machine reaches it, the session uses SMB Direct, and TCP remains as a fallback.
    /// Otherwise [`Channels::Auto`] opens further TCP connections where they help.
    Auto,
}

impl Default for Transports {
    fn default() -> Self {
        Self::from(Transport::Tcp)
    }
}

impl<T: Into<Endpoints>> From<T> for Transports {
    fn from(list: T) -> Self {
        Self::InOrder(list.into())
    }
}

/// Largest number of channels of a session.
pub const CHANNELS_MAX: usize = 32;
/// Largest number of channels that [`Channels::Auto`] opens, as Windows does on one fast interface.
pub(crate) const CHANNELS_AUTO: usize = 4;

/// The connections of a session (its channels).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Channels {
    /// As many as the server's network interfaces suggest: several if the server has several
    /// interfaces or one with receive-side scaling, else one. With one TCP connection, a
    /// [transfer](crate::transfer) of 256 MiB or more opens a second session as another client.
    #[default]
    Auto,
    /// This number, from 1 to [`CHANNELS_MAX`]; fewer if the server refuses.
    Exactly(usize),
    /// One over each of these endpoints, at most [`CHANNELS_MAX`]. The first one carries the login
    /// and replaces [`Options::transports`]; a port that is given with the host is its port. If one
    /// is NetBIOS, all must be: NetBIOS frames are shorter, and a channel must negotiate the same
    /// limits as the first one. \[MS-SMB2\] 3.2.5.2
    Over(Vec<Endpoint>),
}

/// The options of a client. The defaults suit most programs.
///
/// The struct grows with new versions, so make one by [`Options::default`] and the methods, which
/// have the names of the fields:
///
/// ```
/// use std::time::Duration;
/// use smbeam_client::{Channels, Options, Protection};
///
/// let options = Options::default()
///     .protection(Protection::Encrypt)
///     .channels(Channels::Exactly(2))
///     .connect_timeout(Duration::from_secs(5));
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Transports of the first connection. Default: TCP.
    pub transports: Transports,
    /// Socket options of TCP connections.
    pub tcp: TcpOptions,
    /// Settings of QUIC connections.
    pub quic: QuicSettings,
    /// Connections of a session. Default: [`Channels::Auto`].
    pub channels: Channels,
    /// Trusted server certificates and the client's own certificate, for QUIC.
    pub tls: ClientSettings,
    /// Whether TLS with a verified server replaces SMB encryption if the server agrees. Without
    /// the server's agreement, or with [`Protection::Encrypt`], messages are encrypted again within
    /// TLS. Default: no. \[MS-SMB2\] 2.2.3.1.5
    pub transport_security: bool,
    /// RDMA provider for SMB Direct.
    pub rdma: rdma::Choice,
    /// Shortest READ or WRITE in bytes whose data move by RDMA. Default: 4096.
    pub rdma_threshold: u32,
    /// Time that an I/O thread polls an RDMA connection after a completion before it waits for an
    /// interrupt. Default: zero.
    pub rdma_busy_poll: Duration,
    /// Signing and encryption of messages. Default: as the server asks.
    pub protection: Protection,
    /// Offered dialects. Default: 2.0.2 to 3.1.1.
    pub dialects: Vec<Dialect>,
    /// Offered ciphers, the preferred one first.
    pub ciphers: Vec<Cipher>,
    /// Offered signing algorithms, the preferred one first.
    pub signing_algorithms: Vec<SigningAlgorithm>,
    /// Whether a login that the server maps to its guest account succeeds. The messages of a guest
    /// are neither signed nor encrypted. Default: no.
    pub allow_guest: bool,
    /// Largest READ or WRITE in bytes. 0 stands for 1 MiB, and for up to 8 MiB in
    /// [transfers](crate::transfer) of large files over TCP. Default: 0.
    pub io_size: u32,
    /// Requests in flight for one operation on a file. 0 stands for 16, for 32 over QUIC, and for
    /// 12 to 16 MiB of requests in transfers of large files over TCP. Default: 0.
    pub depth: usize,
    /// Credits that the client requests on each channel. Default: 8192.
    pub credits: u16,
    /// Time limit of a connection attempt to one address. Default: 10 seconds.
    pub connect_timeout: Duration,
    /// Time limit of negotiation and login together. Default: 30 seconds.
    pub login_timeout: Duration,
    /// Time limit of a response, plus one second for each 128 KiB that are in flight before it and
    /// with it. `None` waits without a limit. Default: 60 seconds.
    pub request_timeout: Option<Duration>,
    /// Idle time after which the client sends an ECHO. A connection without a response to it is
    /// lost. Default: 60 seconds.
    pub echo_interval: Duration,
    /// Count of I/O threads. 0 stands for one per processor, at most 4. Default: 0.
    pub threads: usize,
    /// I/O interface of the kernel: io_uring or epoll.
    pub io: ring::Io,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            transports: Transports::default(),
            tcp: TcpOptions::default(),
            quic: QuicSettings::default(),
            channels: Channels::Auto,
            tls: ClientSettings::default(),
            transport_security: false,
            rdma: rdma::Choice::Verbs,
            rdma_threshold: 4096,
            rdma_busy_poll: Duration::ZERO,
            protection: Protection::AsAsked,
            dialects: vec![
                Dialect::SMB_2_0_2,
                Dialect::SMB_2_1,
                Dialect::SMB_3_0,
                Dialect::SMB_3_0_2,
                Dialect::SMB_3_1_1,
            ],
            ciphers: CIPHER_PREFERENCE.to_vec(),
            signing_algorithms: SIGNING_PREFERENCE.to_vec(),
            allow_guest: false,
            io_size: 0,
            depth: 0,
            credits: 8192,
            connect_timeout: Duration::from_secs(10),
            login_timeout: Duration::from_secs(30),
            request_timeout: Some(Duration::from_secs(60)),
            echo_interval: Duration::from_secs(60),
            threads: 0,
            io: ring::Io::Auto,
        }
    }
}

/// Each method sets the field of its name.
impl Options {
    /// Sets [`Options::transports`](field@Self::transports).
    #[must_use]
    pub fn transports(mut self, transports: impl Into<Transports>) -> Self {
        self.transports = transports.into();
        self
    }

    /// Sets [`Options::tcp`](field@Self::tcp).
    #[must_use]
    pub fn tcp(mut self, tcp: TcpOptions) -> Self {
        self.tcp = tcp;
        self
    }

    /// Sets [`Options::quic`](field@Self::quic).
    #[must_use]
    pub fn quic(mut self, quic: QuicSettings) -> Self {
        self.quic = quic;
        self
    }

    /// Sets [`Options::channels`](field@Self::channels).
    #[must_use]
    pub fn channels(mut self, channels: Channels) -> Self {
        self.channels = channels;
        self
    }

    /// Sets [`Options::tls`](field@Self::tls).
    #[must_use]
    pub fn tls(mut self, tls: ClientSettings) -> Self {
        self.tls = tls;
        self
    }

    /// Sets [`Options::transport_security`](field@Self::transport_security).
    #[must_use]
    pub fn transport_security(mut self, transport_security: bool) -> Self {
        self.transport_security = transport_security;
        self
    }

    /// Sets [`Options::rdma`](field@Self::rdma).
    #[must_use]
    pub fn rdma(mut self, rdma: rdma::Choice) -> Self {
        self.rdma = rdma;
        self
    }

    /// Sets [`Options::rdma_threshold`](field@Self::rdma_threshold).
    #[must_use]
    pub fn rdma_threshold(mut self, rdma_threshold: u32) -> Self {
        self.rdma_threshold = rdma_threshold;
        self
    }

    /// Sets [`Options::rdma_busy_poll`](field@Self::rdma_busy_poll).
    #[must_use]
    pub fn rdma_busy_poll(mut self, rdma_busy_poll: Duration) -> Self {
        self.rdma_busy_poll = rdma_busy_poll;
        self
    }

    /// Sets [`Options::protection`](field@Self::protection).
    #[must_use]
    pub fn protection(mut self, protection: Protection) -> Self {
        self.protection = protection;
        self
    }

    /// Sets [`Options::dialects`](field@Self::dialects).
    #[must_use]
    pub fn dialects(mut self, dialects: Vec<Dialect>) -> Self {
        self.dialects = dialects;
        self
    }

    /// Sets [`Options::ciphers`](field@Self::ciphers).
    #[must_use]
    pub fn ciphers(mut self, ciphers: Vec<Cipher>) -> Self {
        self.ciphers = ciphers;
        self
    }

    /// Sets [`Options::signing_algorithms`](field@Self::signing_algorithms).
    #[must_use]
    pub fn signing_algorithms(mut self, signing_algorithms: Vec<SigningAlgorithm>) -> Self {
        self.signing_algorithms = signing_algorithms;
        self
    }

    /// Sets [`Options::allow_guest`](field@Self::allow_guest).
    #[must_use]
    pub fn allow_guest(mut self, allow_guest: bool) -> Self {
        self.allow_guest = allow_guest;
        self
    }

    /// Sets [`Options::io_size`](field@Self::io_size).
    #[must_use]
    pub fn io_size(mut self, io_size: u32) -> Self {
        self.io_size = io_size;
        self
    }

    /// Sets [`Options::depth`](field@Self::depth).
    #[must_use]
    pub fn depth(mut self, depth: usize) -> Self {
        self.depth = depth;
        self
    }

    /// Sets [`Options::credits`](field@Self::credits).
    #[must_use]
    pub fn credits(mut self, credits: u16) -> Self {
        self.credits = credits;
        self
    }

    /// Sets [`Options::connect_timeout`](field@Self::connect_timeout).
    #[must_use]
    pub fn connect_timeout(mut self, connect_timeout: Duration) -> Self {
        self.connect_timeout = connect_timeout;
        self
    }

    /// Sets [`Options::login_timeout`](field@Self::login_timeout).
    #[must_use]
    pub fn login_timeout(mut self, login_timeout: Duration) -> Self {
        self.login_timeout = login_timeout;
        self
    }

    /// Sets [`Options::request_timeout`](field@Self::request_timeout).
    #[must_use]
    pub fn request_timeout(mut self, request_timeout: Option<Duration>) -> Self {
        self.request_timeout = request_timeout;
        self
    }

    /// Sets [`Options::echo_interval`](field@Self::echo_interval).
    #[must_use]
    pub fn echo_interval(mut self, echo_interval: Duration) -> Self {
        self.echo_interval = echo_interval;
        self
    }

    /// Sets [`Options::threads`](field@Self::threads).
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Sets [`Options::io`](field@Self::io).
    #[must_use]
    pub fn io(mut self, io: ring::Io) -> Self {
        self.io = io;
        self
    }
}

impl Options {
    /// Length in bytes of a READ or WRITE whose length no transfer chooses.
    pub(crate) fn usual_bytes(&self) -> u32 {
        match self.io_size {
            0 => REQUEST_BYTES,
            size => size,
        }
    }

    /// Length in bytes of the largest READ or WRITE.
    pub(crate) fn most_bytes(&self) -> u32 {
        match self.io_size {
            0 => IO_MAX,
            size => size,
        }
    }

    pub(crate) fn thread_count(&self) -> usize {
        match self.threads {
            0 => std::thread::available_parallelism().map_or(1, |count| count.get().min(4)),
            count => count,
        }
    }
}

/// The user that logs in.
#[derive(Clone)]
pub struct Credentials {
    login: Login,
}

/// How a user logs in.
#[derive(Clone)]
enum Login {
    Anonymous,
    User(User),
    Mechanism(Arc<dyn InitiatorProvider>),
}

#[derive(Clone)]
struct User {
    domain: String,
    name: String,
    password: Zeroizing<String>,
}

impl Credentials {
    /// A user with a password. Without a domain the server looks the user up among its local
    /// accounts.
    pub fn new(domain: Option<&str>, user: &str, password: &str) -> Self {
        Self {
            login: Login::User(User {
                domain: domain.unwrap_or_default().to_owned(),
                name: user.to_owned(),
                password: Zeroizing::new(password.to_owned()),
            }),
        }
    }

    /// A login by a security mechanism of the caller, such as Kerberos. The client offers this
    /// mechanism alone. A mechanism that may block runs on a thread, so that other connections
    /// continue meanwhile.
    pub fn with_mechanism(provider: Arc<dyn InitiatorProvider>) -> Self {
        Self {
            login: Login::Mechanism(provider),
        }
    }

    /// An anonymous login.
    pub fn anonymous() -> Self {
        Self {
            login: Login::Anonymous,
        }
    }

    pub(crate) fn for_login(&self) -> Arc<dyn InitiatorProvider> {
        match &self.login {
            Login::Anonymous => Arc::new(auth::Credentials::Anonymous),
            Login::User(User {
                domain,
                name,
                password,
            }) => Arc::new(auth::Credentials::with_password(name, domain, password)),
            Login::Mechanism(provider) => Arc::clone(provider),
        }
    }

    pub(crate) fn is_anonymous(&self) -> bool {
        matches!(self.login, Login::Anonymous)
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.login {
            Login::Anonymous => f.write_str("Credentials(anonymous)"),
            Login::User(user) => write!(f, "Credentials({}\\{}, ***)", user.domain, user.name),
            Login::Mechanism(_) => f.write_str("Credentials(by mechanism)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_shown() {
        let credentials = Credentials::new(Some("HOME"), "alice", "sesame");
        assert_eq!(format!("{credentials:?}"), "Credentials(HOME\\alice, ***)");
    }
}
