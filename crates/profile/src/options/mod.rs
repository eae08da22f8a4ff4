//! The options of a connection, by name or by field.

mod arguments;
mod certificates;
mod error;
mod names;

use std::env;
use std::time::Duration;

use smbeam_client::{
    Channels, Dialect, Options, Protection, QuicSettings, RdmaChoice, TcpOptions, Transports,
};

use crate::login::Login;

pub use certificates::Certificates;
pub use error::OptionError;

/// The environment variable with the RDMA provider.
pub const RDMA_VARIABLE: &str = "SMBEAM_RDMA";

/// The options of a connection, as those of the command line.
///
/// A program sets fields, or sets options by name and text:
///
/// ```
/// use smbeam_profile::ConnectOptions;
///
/// let mut options = ConnectOptions::default();
/// options.set("channels", "4")?;
/// options.set("encrypt", "yes")?;
/// let options: smbeam_client::Options = options.build()?;
/// # Ok::<(), smbeam_profile::OptionError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    /// Connections of a session.
    pub channels: Channels,
    /// Transports of the first connection.
    pub transports: Transports,
    /// Socket options of TCP connections.
    pub tcp: TcpOptions,
    /// Parameters of QUIC connections.
    pub quic: QuicSettings,
    /// RDMA provider. `None` selects that of the variable `SMBEAM_RDMA`, or else verbs.
    pub rdma: Option<RdmaChoice>,
    /// Whether the client signs all requests, and requires signed responses.
    pub sign: bool,
    /// Whether the client encrypts all messages.
    pub encrypt: bool,
    /// Whether the TLS of QUIC replaces SMB encryption if the server agrees.
    pub transport_security: bool,
    /// Bytes of the smallest request that transfers its data by RDMA.
    pub rdma_threshold: u32,
    /// Time for which an SMB Direct connection polls for more data, at most 10 ms.
    pub rdma_busy_poll: Duration,
    /// Whether the client requests no leases.
    pub no_leases: bool,
    /// Whether the client requests no durable handles.
    pub no_durable: bool,
    /// Whether the client does not ask for the SMB3 POSIX extensions.
    pub no_posix: bool,
    /// The only dialect that the client offers.
    pub dialect: Option<Dialect>,
    /// The newest dialect that the client offers.
    pub max_protocol: Option<Dialect>,
    /// Bytes of a READ or WRITE. `None` selects the default of the library.
    pub io_size: Option<u32>,
    /// Requests in flight for a file. `None` selects the default of the library.
    pub depth: Option<usize>,
    /// Time limit of a connection, a login (at most 30 s) or a response. Zero waits for responses
    /// without a limit.
    pub timeout: Duration,
    /// Certificates for QUIC.
    pub certificates: Certificates,
    /// User and password. A login as guest or anonymous permits sessions without keys.
    pub login: Login,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        let library = Options::default();
        Self {
            channels: library.channels,
            transports: library.transports,
            tcp: library.tcp,
            quic: library.quic,
            rdma: None,
            sign: false,
            encrypt: false,
            transport_security: library.transport_security,
            rdma_threshold: library.rdma_threshold,
            rdma_busy_poll: library.rdma_busy_poll,
            no_leases: false,
            no_durable: false,
            no_posix: false,
            dialect: None,
            max_protocol: None,
            io_size: None,
            depth: None,
            timeout: Duration::from_secs(60),
            certificates: Certificates::default(),
            login: Login::default(),
        }
    }
}

impl ConnectOptions {
    /// Converts the options for the client library.
    ///
    /// # Errors
    /// Two options exclude each other, an option needs another one, or the variable `SMBEAM_RDMA`
    /// is not an RDMA provider.
    pub fn build(&self) -> Result<Options, OptionError> {
        self.check()?;
        let mut options = Options::default()
            .channels(self.channels.clone())
            .transports(self.transports.clone())
            .tcp(self.tcp.clone())
            .quic(self.quic.clone())
            .tls(self.certificates.settings())
            .transport_security(self.transport_security)
            .rdma(self.provider()?)
            .rdma_threshold(self.rdma_threshold)
            .rdma_busy_poll(self.rdma_busy_poll)
            .protection(match (self.sign, self.encrypt) {
                (_, true) => Protection::Encrypt,
                (true, false) => Protection::Sign,
                (false, false) => Protection::AsAsked,
            })
            .io_size(self.io_size.unwrap_or(0))
            .depth(self.depth.unwrap_or(0))
            .leases(!self.no_leases)
            .durable(!self.no_durable)
            .posix(!self.no_posix)
            .allow_guest(self.login.is_without_password());
        if let Some(only) = self.dialect {
            options.dialects.retain(|dialect| *dialect == only);
        }
        if let Some(newest) = self.max_protocol {
            options.dialects.retain(|dialect| dialect.0 <= newest.0);
        }
        self.apply_timeout(&mut options);
        Ok(options)
    }

    fn apply_timeout(&self, options: &mut Options) {
        let limit = Some(self.timeout).filter(|limit| !limit.is_zero());
        options.request_timeout = limit;
        if let Some(limit) = limit {
            options.connect_timeout = limit;
            options.login_timeout = options.login_timeout.min(limit);
        }
    }

    fn provider(&self) -> Result<RdmaChoice, OptionError> {
        if let Some(provider) = &self.rdma {
            return Ok(provider.clone());
        }
        let Ok(text) = env::var(RDMA_VARIABLE) else {
            return Ok(RdmaChoice::default());
        };
        text.parse()
            .map_err(|error| OptionError::value(RDMA_VARIABLE, &text, &error))
    }

    fn check(&self) -> Result<(), OptionError> {
        let Self {
            certificates,
            login,
            ..
        } = self;
        let has_pins = !certificates.pin_sha256.is_empty();
        let has_user = login.user.is_some();
        let has_file = login.password_file.is_some();
        let has_authorities = certificates.ca_file.is_some();
        let excluded = [
            (("sign", self.sign), ("encrypt", self.encrypt)),
            (
                ("transport_security", self.transport_security),
                ("encrypt", self.encrypt),
            ),
            (
                ("dialect", self.dialect.is_some()),
                ("max_protocol", self.max_protocol.is_some()),
            ),
            (("ca_file", has_authorities), ("pin_sha256", has_pins)),
            (
                ("ca_file", has_authorities),
                ("insecure", certificates.insecure),
            ),
            (
                ("pin_sha256", has_pins),
                ("insecure", certificates.insecure),
            ),
            (("anonymous", login.anonymous), ("guest", login.guest)),
            (("anonymous", login.anonymous), ("user", has_user)),
            (("anonymous", login.anonymous), ("password_file", has_file)),
            (("guest", login.guest), ("user", has_user)),
            (("guest", login.guest), ("password_file", has_file)),
        ];
        for ((one, has_one), (other, has_other)) in excluded {
            if has_one && has_other {
                return Err(OptionError::Conflict(one, other));
            }
        }
        if certificates.client_key.is_some() && certificates.client_cert.is_none() {
            return Err(OptionError::Requires("client_key", "client_cert"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
