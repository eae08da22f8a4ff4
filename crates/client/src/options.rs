//! What a client is told before it connects.

use std::fmt;
use std::time::Duration;

use crypto::{CIPHER_PREFERENCE, Cipher, SIGNING_PREFERENCE, SigningAlgorithm};
use net::quic::Settings as QuicSettings;
use net::tls::ClientSettings;
use net::{Endpoint, Endpoints, TcpOptions, Transport};
use proto::client::IO_MAX;
pub use proto::client::config::Protection;
use wire::dialect::Dialect;
use zeroize::Zeroizing;

/// The most channels of a session.
pub const CHANNELS_MAX: usize = 32;
/// The most channels that are opened unasked, as Windows does on one fast interface.
pub(crate) const CHANNELS_AUTO: usize = 4;

/// Bytes of one request where nothing else is said: of reads and writes of callers, of small files
/// and of links of which nothing better is known.
pub const REQUEST_BYTES: u32 = 1 << 20;

/// How the first connection to a server is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transports {
    /// One after the other until one answers, each with a time-out of its own. A port that is
    /// given with the host takes the place of the first one's.
    InOrder(Endpoints),
    /// By TCP; then the server is asked which interfaces it has. Where one speaks RDMA, and one
    /// here reaches it, everything goes by SMB Direct, and TCP stays for when that is lost. Else
    /// [`Channels::Auto`] opens what further connections of TCP are worth it.
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

/// How many connections a session has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Channels {
    /// As the server's network interfaces suggest: more than one where there are several, or one
    /// that spreads over processors; else one, and with it for a [transfer](crate::transfer) of
    /// 256 MiB or more over TCP another, of a session and client of its own.
    #[default]
    Auto,
    /// So many, from 1 to [`CHANNELS_MAX`]; fewer where the server refuses.
    Exactly(usize),
    /// One over each of these, [`CHANNELS_MAX`] at most: the first carries the login, in place of
    /// [`Options::transports`]. A port that is given with the host is the first one's. Where one
    /// is of NetBIOS all have to be: its frames are smaller, and a server that can do less on one
    /// channel than on another is not believed to be the same. \[MS-SMB2\] 3.2.5.2
    Over(Vec<Endpoint>),
}

/// What a client offers and how it works. The default is good for most.
#[derive(Clone, Debug)]
pub struct Options {
    /// How the first connection is made.
    pub transports: Transports,
    /// What the kernel is told of connections of TCP.
    pub tcp: TcpOptions,
    /// How connections of QUIC behave.
    pub quic: QuicSettings,
    /// How many connections a session has.
    pub channels: Channels,
    /// Which servers are believed where TLS is beneath, and who we say that we are.
    pub tls: ClientSettings,
    /// Whether TLS of a server that is verified is protection enough where the server asks for
    /// sealing; where it does not, and with [`Protection::Seal`], messages are sealed once more.
    /// \[MS-SMB2\] 2.2.3.1.5
    pub transport_security: bool,
    /// Who makes connections over RDMA, for SMB Direct.
    pub rdma: rdma::Choice,
    /// Bytes of a READ or WRITE from which on its data go by RDMA.
    pub rdma_threshold: u32,
    /// How long a connection over RDMA is asked again and again, after it had something, before
    /// its thread waits to be told.
    pub rdma_busy_poll: Duration,
    /// How far messages are protected.
    pub protection: Protection,
    /// Dialects that are offered.
    pub dialects: Vec<Dialect>,
    /// Ciphers that are offered, the best first.
    pub ciphers: Vec<Cipher>,
    /// Signing algorithms that are offered, the best first.
    pub signing_algorithms: Vec<SigningAlgorithm>,
    /// Whether it is good enough where the server makes a guest of us, whose messages nobody
    /// signs.
    pub allow_guest: bool,
    /// Bytes of one READ or WRITE at most; 0: 1 MiB, and up to 8 MiB where a
    /// [transfer](crate::transfer) of a large file over TCP is left the choice.
    pub io_size: u32,
    /// Requests in flight of one operation on a file; 0: 16, and 32 over QUIC, whose paths are
    /// long and lose packets; of transfers over TCP that choose their size, as many as are 16 MiB,
    /// and few where a server on this machine writes.
    pub depth: usize,
    /// Credits that are asked for until so many are held, on each channel.
    pub credits: u16,
    /// How long connecting to one address may take.
    pub connect_timeout: Duration,
    /// How long negotiation and login may take in all.
    pub login_timeout: Duration,
    /// How long an answer may take, beside a second for each 128 KiB that are on their way before
    /// it and with it; `None` waits for ever.
    pub request_timeout: Option<Duration>,
    /// An ECHO is sent where nothing came for so long; without an answer to it the connection is
    /// lost.
    pub echo_interval: Duration,
    /// I/O threads; 0 is one a processor, at most 4.
    pub threads: usize,
    /// What moves the bytes.
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

impl Options {
    /// Bytes of a READ or WRITE of which no transfer chooses the size.
    pub(crate) fn usual_bytes(&self) -> u32 {
        match self.io_size {
            0 => REQUEST_BYTES,
            size => size,
        }
    }

    /// Bytes of the largest READ or WRITE.
    pub(crate) fn most_bytes(&self) -> u32 {
        match self.io_size {
            0 => IO_MAX,
            size => size,
        }
    }

    pub(crate) fn threads(&self) -> usize {
        match self.threads {
            0 => std::thread::available_parallelism().map_or(1, |count| count.get().min(4)),
            count => count,
        }
    }
}

/// Who logs in.
#[derive(Clone)]
pub struct Credentials {
    user: Option<User>,
}

#[derive(Clone)]
struct User {
    domain: String,
    name: String,
    password: Zeroizing<String>,
}

impl Credentials {
    /// A user with a password. Without a domain the server's own accounts are meant.
    pub fn new(domain: Option<&str>, user: &str, password: &str) -> Self {
        Self {
            user: Some(User {
                domain: domain.unwrap_or_default().to_owned(),
                name: user.to_owned(),
                password: Zeroizing::new(password.to_owned()),
            }),
        }
    }

    /// Nobody in particular.
    pub fn anonymous() -> Self {
        Self { user: None }
    }

    pub(crate) fn for_login(&self) -> auth::Credentials {
        match &self.user {
            None => auth::Credentials::Anonymous,
            Some(User {
                domain,
                name,
                password,
            }) => auth::Credentials::with_password(name, domain, password),
        }
    }

    pub(crate) fn is_anonymous(&self) -> bool {
        self.user.is_none()
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.user {
            None => f.write_str("Credentials(anonymous)"),
            Some(user) => write!(f, "Credentials({}\\{}, ***)", user.domain, user.name),
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
