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

/// Length in bytes of a READ or WRITE if no option and no transfer selects another length: 1 MiB.
pub const REQUEST_BYTES: u32 = 1 << 20;

/// The transports that the client tries for the first connection to a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transports {
    /// Try these one after the other until one connects, each with
    /// [`Options::connect_timeout`]. A port that is given with the host replaces the port of the
    /// first one.
    InOrder(Endpoints),
    /// Connect by TCP, then query the server's network interfaces. If an interface supports RDMA
    /// and this machine reaches it, the session uses SMB Direct, and TCP remains as a fallback.
    /// Otherwise the session opens further TCP connections as [`Channels::Auto`] describes.
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

/// Largest number of channels (connections) of one session.
pub const CHANNELS_MAX: usize = 32;
/// Largest number of channels that [`Channels::Auto`] opens, as Windows does on one fast interface.
pub(crate) const CHANNELS_AUTO: usize = 4;

/// The number of connections of a session (the channels), and their transports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Channels {
    /// As many as the server's network interfaces suggest: several if the server has several
    /// interfaces or one with receive-side scaling, else one. With one TCP connection, a
    /// [transfer](crate::transfer) of 256 MiB or more opens a second session as another client.
    #[default]
    Auto,
    /// This number of channels, from 1 to [`CHANNELS_MAX`]; fewer if the server refuses further
    /// ones.
    Exactly(usize),
    /// One channel over each of these endpoints, at most [`CHANNELS_MAX`] of them. The first one
    /// carries the login and replaces [`Options::transports`]; a port that is given with the host
    /// is the port of the first endpoint. If one endpoint is NetBIOS, all must be: NetBIOS frames
    /// are shorter, and a channel must negotiate the same limits as the first one. \[MS-SMB2\]
    /// 3.2.5.2
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
    /// Socket options of TCP connections, such as keep-alive. Default: [`TcpOptions::default`].
    pub tcp: TcpOptions,
    /// Parameters of QUIC connections: window sizes, time limits and congestion controller.
    /// Default: [`QuicSettings::default`].
    pub quic: QuicSettings,
    /// Number of connections of a session. Default: [`Channels::Auto`].
    pub channels: Channels,
    /// TLS settings for QUIC: the trusted server certificates, and the certificate of the client.
    /// Default: the authorities of the system, no certificate of the client.
    pub tls: ClientSettings,
    /// Whether the client offers the server to replace SMB encryption by the TLS of QUIC, with a
    /// verified server certificate. If the server does not agree, or with [`Protection::Encrypt`],
    /// SMB encryption stays. Default: no. \[MS-SMB2\] 2.2.3.1.5
    pub transport_security: bool,
    /// Whether the client asks for the SMB3 POSIX extensions of Samba, Linux and smbeam.
    /// [`SessionInfo::posix`](crate::SessionInfo::posix) reports whether the server has them. An
    /// open uses them only with [`OpenOptions::posix`](crate::OpenOptions::posix). Default: yes.
    pub posix: bool,
    /// RDMA provider for SMB Direct: the verbs library of the system, or an emulation. Default:
    /// verbs.
    pub rdma: rdma::Choice,
    /// Shortest READ or WRITE, in bytes, that transfers its data by RDMA. Shorter ones carry the
    /// data in the message. Only for SMB Direct. Default: 4096.
    pub rdma_threshold: u32,
    /// Time that an I/O thread polls an RDMA connection after a completion before it waits for an
    /// interrupt. Longer times cost processor time and lower the latency. Default: zero.
    pub rdma_busy_poll: Duration,
    /// Requirements for signing and encryption of messages. Default: [`Protection::AsAsked`], only
    /// if the server requires them.
    pub protection: Protection,
    /// Dialects that the client offers. Default: 2.0.2 to 3.1.1.
    pub dialects: Vec<Dialect>,
    /// Ciphers that the client offers for encryption, the preferred one first. Default: all.
    pub ciphers: Vec<Cipher>,
    /// Signing algorithms that the client offers, the preferred one first. Default: all.
    pub signing_algorithms: Vec<SigningAlgorithm>,
    /// Whether a login that the server maps to its guest account succeeds. The messages of a guest
    /// are neither signed nor encrypted. Default: no.
    pub allow_guest: bool,
    /// Maximum length of a READ or WRITE in bytes. 0 selects 1 MiB, and up to 8 MiB in
    /// [transfers](crate::transfer) of large files over TCP. Default: 0.
    pub io_size: u32,
    /// Maximum number of requests in flight for one operation on a file. 0 selects 16, or 32 over
    /// QUIC; transfers of large files over TCP then have 12 to 16 MiB in flight. Default: 0.
    pub depth: usize,
    /// Number of credits (permissions to send a request) that the client requests from the server
    /// on each channel. Default: 8192.
    pub credits: u16,
    /// Time limit of a connection attempt to one address. Default: 10 seconds.
    pub connect_timeout: Duration,
    /// Time limit of negotiation and login together. Default: 30 seconds.
    pub login_timeout: Duration,
    /// Time limit for the response to a request. The limit grows by one second for each 128 KiB of
    /// data in this request and in the requests in flight before it. `None` waits without a limit.
    /// Default: 60 seconds.
    pub request_timeout: Option<Duration>,
    /// Time without a message from the server after which the client sends an ECHO request. If no
    /// response arrives within the same time, the connection counts as lost. Default: 60 seconds.
    pub echo_interval: Duration,
    /// Whether the client requests a lease for each file that it opens: the permission to cache the
    /// file, of which [`File::lease`](crate::File::lease) returns the state. The server can refuse
    /// it. Durable opens need leases. Default: yes. \[MS-SMB2\] 2.2.13.2.10
    pub leases: bool,
    /// Whether the client requests that its opens are durable: after a loss of all connections the
    /// server preserves them for some time, with their byte-range locks, and the client reclaims
    /// them. Only with leases. Default: yes. \[MS-SMB2\] 2.2.13.2.11
    pub durable: bool,
    /// Time for which the client tries to connect again after the loss of all connections of a
    /// session that has open files or unanswered requests. Requests wait meanwhile. Zero does not
    /// try, and requests fail at once. Default: 60 seconds, for which servers preserve durable
    /// opens.
    pub reconnect_timeout: Duration,
    /// Number of I/O threads of the client. 0 selects one for each processor, at most 4. Default:
    /// 0.
    pub threads: usize,
    /// I/O interface of the kernel that the I/O threads use: io_uring or epoll. Default: io_uring
    /// if it is available, else epoll.
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
            posix: true,
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
            leases: true,
            durable: true,
            reconnect_timeout: Duration::from_secs(60),
            threads: 0,
            io: ring::Io::Auto,
        }
    }
}

/// Each method sets the field of its name.
impl Options {
    /// Sets the [transports](field@Self::transports) that the client tries for the first
    /// connection.
    #[must_use]
    pub fn transports(mut self, transports: impl Into<Transports>) -> Self {
        self.transports = transports.into();
        self
    }

    /// Sets the [socket options](field@Self::tcp) of TCP connections.
    #[must_use]
    pub fn tcp(mut self, tcp: TcpOptions) -> Self {
        self.tcp = tcp;
        self
    }

    /// Sets the [settings](field@Self::quic) of QUIC connections.
    #[must_use]
    pub fn quic(mut self, quic: QuicSettings) -> Self {
        self.quic = quic;
        self
    }

    /// Sets the [number of connections](field@Self::channels) of a session.
    #[must_use]
    pub fn channels(mut self, channels: Channels) -> Self {
        self.channels = channels;
        self
    }

    /// Sets the trusted certificates and the client's own certificate [for QUIC](field@Self::tls).
    #[must_use]
    pub fn tls(mut self, tls: ClientSettings) -> Self {
        self.tls = tls;
        self
    }

    /// Sets whether TLS [replaces SMB encryption](field@Self::transport_security) if the server
    /// agrees.
    #[must_use]
    pub fn transport_security(mut self, transport_security: bool) -> Self {
        self.transport_security = transport_security;
        self
    }

    /// Sets whether the client asks for the [SMB3 POSIX extensions](field@Self::posix).
    #[must_use]
    pub fn posix(mut self, posix: bool) -> Self {
        self.posix = posix;
        self
    }

    /// Sets the [RDMA provider](field@Self::rdma) for SMB Direct.
    #[must_use]
    pub fn rdma(mut self, rdma: rdma::Choice) -> Self {
        self.rdma = rdma;
        self
    }

    /// Sets the length in bytes of the [shortest READ or WRITE](field@Self::rdma_threshold) with
    /// data that move by RDMA.
    #[must_use]
    pub fn rdma_threshold(mut self, rdma_threshold: u32) -> Self {
        self.rdma_threshold = rdma_threshold;
        self
    }

    /// Sets the time that an I/O thread [polls an RDMA connection](field@Self::rdma_busy_poll)
    /// before it waits for an interrupt.
    #[must_use]
    pub fn rdma_busy_poll(mut self, rdma_busy_poll: Duration) -> Self {
        self.rdma_busy_poll = rdma_busy_poll;
        self
    }

    /// Sets the requirements for [signing and encryption](field@Self::protection) of messages.
    #[must_use]
    pub fn protection(mut self, protection: Protection) -> Self {
        self.protection = protection;
        self
    }

    /// Sets the [dialects](field@Self::dialects) that the client offers.
    #[must_use]
    pub fn dialects(mut self, dialects: Vec<Dialect>) -> Self {
        self.dialects = dialects;
        self
    }

    /// Sets the [ciphers](field@Self::ciphers) that the client offers, the preferred one first.
    #[must_use]
    pub fn ciphers(mut self, ciphers: Vec<Cipher>) -> Self {
        self.ciphers = ciphers;
        self
    }

    /// Sets the [signing algorithms](field@Self::signing_algorithms) that the client offers, the
    /// preferred one first.
    #[must_use]
    pub fn signing_algorithms(mut self, signing_algorithms: Vec<SigningAlgorithm>) -> Self {
        self.signing_algorithms = signing_algorithms;
        self
    }

    /// Sets whether a login that the server maps to its [guest account](field@Self::allow_guest)
    /// succeeds.
    #[must_use]
    pub fn allow_guest(mut self, allow_guest: bool) -> Self {
        self.allow_guest = allow_guest;
        self
    }

    /// Sets the length of the [largest READ or WRITE](field@Self::io_size) in bytes; 0 stands for
    /// the default.
    #[must_use]
    pub fn io_size(mut self, io_size: u32) -> Self {
        self.io_size = io_size;
        self
    }

    /// Sets the number of [requests in flight](field@Self::depth) for one operation on a file; 0
    /// stands for the default.
    #[must_use]
    pub fn depth(mut self, depth: usize) -> Self {
        self.depth = depth;
        self
    }

    /// Sets the number of [credits](field@Self::credits) that the client requests on each channel.
    #[must_use]
    pub fn credits(mut self, credits: u16) -> Self {
        self.credits = credits;
        self
    }

    /// Sets the [time limit of a connection attempt](field@Self::connect_timeout) to one address.
    #[must_use]
    pub fn connect_timeout(mut self, connect_timeout: Duration) -> Self {
        self.connect_timeout = connect_timeout;
        self
    }

    /// Sets the [time limit of negotiation and login](field@Self::login_timeout) together.
    #[must_use]
    pub fn login_timeout(mut self, login_timeout: Duration) -> Self {
        self.login_timeout = login_timeout;
        self
    }

    /// Sets the [time limit of a response](field@Self::request_timeout); `None` waits without a
    /// limit.
    #[must_use]
    pub fn request_timeout(mut self, request_timeout: Option<Duration>) -> Self {
        self.request_timeout = request_timeout;
        self
    }

    /// Sets the [idle time](field@Self::echo_interval) after which the client sends an ECHO.
    #[must_use]
    pub fn echo_interval(mut self, echo_interval: Duration) -> Self {
        self.echo_interval = echo_interval;
        self
    }

    /// Sets whether the client requests [leases](field@Self::leases) for the files that it opens.
    #[must_use]
    pub fn leases(mut self, leases: bool) -> Self {
        self.leases = leases;
        self
    }

    /// Sets whether the client requests [durable](field@Self::durable) opens.
    #[must_use]
    pub fn durable(mut self, durable: bool) -> Self {
        self.durable = durable;
        self
    }

    /// Sets the time for which the client [tries to connect again](field@Self::reconnect_timeout)
    /// after a loss of all connections; zero does not try.
    #[must_use]
    pub fn reconnect_timeout(mut self, reconnect_timeout: Duration) -> Self {
        self.reconnect_timeout = reconnect_timeout;
        self
    }

    /// Sets the [number of I/O threads](field@Self::threads); 0 stands for one per processor, at
    /// most 4.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Sets the [I/O interface of the kernel](field@Self::io) that the I/O threads use.
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

/// The identity with which the client logs in to a server: a user with a password, a security
/// mechanism of the caller (such as Kerberos), or an anonymous user.
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
    /// Makes the credentials of a user with a password (NTLM). Without a domain, the server looks
    /// the user up among its local accounts.
    pub fn new(domain: Option<&str>, user: &str, password: &str) -> Self {
        Self {
            login: Login::User(User {
                domain: domain.unwrap_or_default().to_owned(),
                name: user.to_owned(),
                password: Zeroizing::new(password.to_owned()),
            }),
        }
    }

    /// Makes credentials that log in by a security mechanism of the caller, such as Kerberos. The
    /// client offers this mechanism alone. The calls of a mechanism that may block run on a
    /// separate thread, so that other connections continue meanwhile.
    pub fn with_mechanism(provider: Arc<dyn InitiatorProvider>) -> Self {
        Self {
            login: Login::Mechanism(provider),
        }
    }

    /// Makes the credentials of an anonymous login, without a user. A server may refuse such a
    /// login.
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
