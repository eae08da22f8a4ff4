//! `smbeam.toml`: the configuration of a server. Errors name the key and the line.

mod changes;
mod levels;
mod listen;
mod numbers;
mod paths;
mod quic;
mod rdma;
mod sync;
mod tcp;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use net::{Endpoint, Endpoints, Transport};
use proto::server::GmacChannels;
use proto::server::config::MAX_IO;
use serde::Deserialize;
use toml::Spanned;
use wire::file_name::NameMapping;
use wire::upcase::is_same_name;

use crate::interfaces::Entry;

pub use self::changes::needing_restart;
pub use self::levels::Levels;
pub use self::listen::ListenAddress;
pub use self::rdma::{RdmaProvider, RdmaSection};
pub use self::sync::SyncChoice;
pub use quic::{ClientChoice, CongestionChoice, QuicSection, TransportSecurity};
pub use tcp::{PlacementChoice, TcpSection};

/// Wraps a configuration value that does not come from a file, such as a default. The wrapper has
/// the empty range 0..0 instead of a position in the file, so error messages about the value have
/// no line number.
pub fn unplaced<T>(value: T) -> Spanned<T> {
    Spanned::new(0..0, value)
}

/// Longest share name in bytes. \[MS-SRVS\]: clients show at most 80 characters.
const MAX_SHARE_NAME: usize = 80;
/// Most worker threads: more than any machine has cores today.
const MAX_WORKERS: usize = 1024;
/// Most blocking threads of one worker: more do not make a disk faster.
const MAX_BLOCKING_THREADS: usize = 1024;

/// The configuration of a server: the parsed contents of `smbeam.toml`. [`Config::parse`] and
/// [`Config::checked`] check the values.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The section `[server]`: name, addresses and threads of the server.
    #[serde(default)]
    pub server: ServerSection,
    /// The section `[security]`: signing, encryption and dialects.
    #[serde(default)]
    pub security: SecuritySection,
    /// The section `[tcp]`: socket options of TCP and NetBIOS connections.
    #[serde(default)]
    pub tcp: TcpSection,
    /// The section `[quic]`: certificates and parameters of QUIC connections.
    #[serde(default)]
    pub quic: QuicSection,
    /// The section `[rdma]`: devices and timing of SMB Direct connections.
    #[serde(default)]
    pub rdma: RdmaSection,
    /// The section `[limits]`: limits for connections and clients.
    #[serde(default)]
    pub limits: LimitsSection,
    /// The section `[log]`: level and format of the log.
    #[serde(default)]
    pub log: LogSection,
    /// The sections `[[share]]`: one for each share.
    #[serde(default, rename = "share")]
    pub shares: Vec<ShareSection>,
    /// Path and text of the file that the configuration was read from; both empty without a file.
    #[serde(skip)]
    pub source: Source,
}

/// Path and text of a configuration file. Both are empty for a configuration without a file.
#[derive(Debug, Default)]
pub struct Source {
    file: PathBuf,
    text: String,
}

/// The section `[server]` of the configuration: name, addresses and threads of the server.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServerSection {
    /// Name of the server that clients see. `None` (the default) stands for the host name of this
    /// machine.
    pub name: Option<String>,
    /// Comment of the server that clients show beside its name. Default: `smbeam`.
    pub comment: String,
    /// IP addresses to listen on. `None` (the default) stands for all IPv4 and IPv6 addresses.
    pub listen: Option<Vec<ListenAddress>>,
    /// Transports to listen with, each in the form `transport[:port]`: `tcp`, `nbt` (NetBIOS),
    /// `quic` or `smbdirect`. Default: `tcp`.
    pub transports: Vec<Spanned<String>>,
    /// Path of the user file, with the names and password hashes of accounts. `None` (the default):
    /// the server has no accounts.
    pub users: Option<PathBuf>,
    /// Path of the Unix socket through which other processes read the status of the server; an
    /// empty path disables it. `None` (the default) stands for the path that
    /// [`control::default_path`](crate::control::default_path) returns.
    pub control_socket: Option<PathBuf>,
    /// Number of threads that serve connections, at most 1024. 0 (the default) stands for one for
    /// each processor core.
    pub workers: Spanned<usize>,
    /// I/O interface of the kernel that the workers use. Default: io_uring if it is available.
    pub io: IoChoice,
    /// Maximum memory in MiB that each worker thread uses for I/O buffers. Default: 256.
    pub buffer_memory_mb: usize,
    /// Maximum number of threads that each worker uses for file operations that may block, from 1
    /// to 1024. Default: 4.
    pub blocking_threads: Spanned<usize>,
    /// Whether a session may use several connections (multichannel). Default: yes.
    pub multichannel: bool,
    /// Network interfaces that the server reports to clients for multichannel, each in the form
    /// `NAME-OR-ADDRESS[;speed=BITS][;rss]`. Empty (the default): all interfaces that the server
    /// listens on.
    pub interfaces: Vec<Spanned<String>>,
}

impl Default for ServerSection {
    fn default() -> Self {
        Self {
            name: None,
            comment: "smbeam".to_owned(),
            listen: None,
            transports: vec![unplaced("tcp".to_owned())],
            users: None,
            control_socket: None,
            workers: unplaced(0),
            io: IoChoice::Auto,
            buffer_memory_mb: 256,
            blocking_threads: unplaced(4),
            multichannel: true,
            interfaces: Vec::new(),
        }
    }
}

/// The value of `server.io`: the I/O interface of the kernel that the workers use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IoChoice {
    /// io_uring if it is available, else epoll.
    Auto,
    /// io_uring. Without it the server does not start.
    Uring,
    /// epoll for sockets, and threads for files.
    Epoll,
}

impl std::str::FromStr for IoChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "uring" => Ok(Self::Uring),
            "epoll" => Ok(Self::Epoll),
            _ => Err(format!(
                "unknown I/O interface `{text}`: use auto, uring or epoll"
            )),
        }
    }
}

/// The section `[security]` of the configuration: signing, encryption and dialects.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SecuritySection {
    /// Whether every session must sign its messages. Default: yes. Guests cannot sign, so they need
    /// `false`.
    pub signing_required: bool,
    /// Protection of sessions that may use several connections if client and server would sign with
    /// AES-GMAC, which must not repeat a nonce. Default: the server encrypts them.
    pub gmac_channels: GmacChoice,
    /// Whether all sessions must be encrypted. If so, clients with dialects before 3.0 cannot
    /// connect. Default: no.
    pub encryption_required: bool,
    /// Oldest dialect that the server accepts: `2.0.2` (the default), `2.1`, `3.0`, `3.0.2` or
    /// `3.1.1`.
    pub min_dialect: Spanned<String>,
    /// Newest dialect that the server accepts: `2.0.2`, `2.1`, `3.0`, `3.0.2` or `3.1.1` (the
    /// default).
    pub max_dialect: Spanned<String>,
    /// Time in milliseconds that the server waits before its response to a refused login. It slows
    /// down clients that guess passwords. Default: 2000.
    pub failed_login_delay_ms: u64,
    /// Number of failed logins of a client to an account after which the server refuses all logins
    /// of that client to the account (a lockout). Default: 0, which disables lockouts.
    pub lockout_threshold: u32,
    /// Duration of a lockout (see `lockout_threshold`) in milliseconds, at most a year. Failed
    /// logins that are older than this do not count. Default: 900,000 (15 minutes).
    pub lockout_duration_ms: u64,
}

impl Default for SecuritySection {
    fn default() -> Self {
        Self {
            signing_required: true,
            gmac_channels: GmacChoice::default(),
            encryption_required: false,
            min_dialect: unplaced("2.0.2".to_owned()),
            max_dialect: unplaced("3.1.1".to_owned()),
            failed_login_delay_ms: 2000,
            lockout_threshold: 0,
            lockout_duration_ms: 15 * 60 * 1000,
        }
    }
}

/// The value of `security.gmac_channels`: how the server protects a session that may use several
/// connections if AES-GMAC would sign it. The connections share a key and count nonces separately,
/// but AES-GMAC must not repeat a nonce.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GmacChoice {
    /// `encrypt`: the server encrypts the session.
    #[default]
    Encrypt,
    /// `cmac`: the peers sign with AES-CMAC.
    Cmac,
    /// `single`: the session uses one connection.
    Single,
    /// `allow`: AES-GMAC signs all connections of the session, as with other servers.
    Allow,
}

impl From<GmacChoice> for GmacChannels {
    fn from(choice: GmacChoice) -> Self {
        match choice {
            GmacChoice::Encrypt => Self::Encrypt,
            GmacChoice::Cmac => Self::Cmac,
            GmacChoice::Single => Self::Single,
            GmacChoice::Allow => Self::Allow,
        }
    }
}

/// The section `[limits]` of the configuration: limits for connections and clients.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsSection {
    /// Maximum number of connections of the server. Default: 16,384.
    pub connections: usize,
    /// Maximum number of connections on which no client has logged in yet. Default: 4096.
    pub half_open: usize,
    /// Maximum number of connections from one IPv4 address, or from one /64 network of IPv6, on
    /// which no client has logged in yet. Default: 256.
    pub half_open_per_address: usize,
    /// Maximum memory in MiB of all connections on which no client has logged in yet. Default: 128.
    pub half_open_memory_mb: usize,
    /// Maximum time from the start of a connection to its first login, in milliseconds. Default: 30
    /// seconds.
    pub login_timeout_ms: u64,
    /// Maximum time from the first to the last byte of a received frame, in milliseconds. The
    /// server then closes the connection. Default: 60 seconds.
    pub frame_timeout_ms: u64,
    /// Maximum time that a response waits for an SMB Direct client to grant a credit, in
    /// milliseconds. The server then closes the connection. Default: 60 seconds.
    pub credit_timeout_ms: u64,
    /// Maximum length of a frame before the first login of a connection, in bytes. Default: 256
    /// KiB.
    pub frame_before_login: usize,
    /// Maximum length of a READ in bytes, from 64 KiB to 8 MiB. Default: 8 MiB.
    pub max_read: u32,
    /// Maximum length of a WRITE in bytes, from 64 KiB to 8 MiB. Default: 8 MiB.
    pub max_write: u32,
    /// Maximum length of the data of other requests and responses, such as a part of a listing, in
    /// bytes, from 64 KiB to 8 MiB. Default: 8 MiB.
    pub max_transact: u32,
    /// Maximum number of credits that the server grants to one connection. Default: 8192.
    pub credits: u16,
    /// Maximum number of sessions of one connection. Default: 1024.
    pub sessions_per_connection: usize,
    /// Maximum number of logins of one connection that are in progress at a time. Default: 16.
    pub logins_per_connection: usize,
    /// Maximum number of connections of one session. Default: 32.
    pub channels_per_session: usize,
    /// Maximum number of open files, directories and pipes of one session. Default: 65,536.
    pub opens_per_session: usize,
    /// Maximum number of connections from one IPv4 address, or from one /64 network of IPv6.
    /// Default: 4096.
    pub connections_per_address: usize,
    /// Maximum number of connections of one user; a connection counts once for each session.
    /// Default: 8192.
    pub connections_per_user: usize,
    /// Maximum number of open files of one user. Default: 262,144.
    pub opens_per_user: usize,
    /// Maximum number of open pipes of one user. Default: 4096.
    pub pipes_per_user: usize,
    /// Maximum number of watched directories of one user. Default: 8192.
    pub watches_per_user: usize,
    /// Maximum number of byte-range locks of one user. Default: 1,048,576.
    pub locks_per_user: usize,
    /// Maximum memory of all responses outside of the buffer pool, in MiB. Default: 256.
    pub response_memory_mb: usize,
    /// Maximum memory of the process, in MiB. 0 stands for three quarters of the memory of the
    /// machine or of the control group. Default: 0.
    pub memory_max_mb: usize,
    /// Maximum time that running requests may take when the server stops, in milliseconds. Default:
    /// 10 seconds.
    pub shutdown_ms: u64,
}

impl Default for LimitsSection {
    fn default() -> Self {
        let proto = proto::server::config::Limits::default();
        Self {
            connections: 16_384,
            half_open: 4096,
            half_open_per_address: 256,
            half_open_memory_mb: 128,
            login_timeout_ms: millis(proto.login_timeout),
            frame_timeout_ms: 60_000,
            credit_timeout_ms: 60_000,
            frame_before_login: proto.frame_before_login,
            max_read: MAX_IO,
            max_write: MAX_IO,
            max_transact: MAX_IO,
            credits: proto.credits,
            sessions_per_connection: proto.sessions_per_connection,
            logins_per_connection: proto.logins_per_connection,
            channels_per_session: proto.channels_per_session,
            opens_per_session: proto.opens_per_session,
            connections_per_address: 4096,
            connections_per_user: proto.connections_per_user,
            opens_per_user: proto.opens_per_user,
            pipes_per_user: proto.pipes_per_user,
            watches_per_user: proto.watches_per_user,
            locks_per_user: proto.locks_per_user,
            response_memory_mb: proto.response_bytes >> 20,
            memory_max_mb: 0,
            shutdown_ms: 10_000,
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The section `[log]` of the configuration: level and format of the log.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LogSection {
    /// Format of log lines: text or JSON. Default: text.
    pub format: LogFormat,
    /// Levels of the log in text form: `off`, `error`, `warn`, `info`, `debug` or `trace`, or a
    /// list with levels of single modules such as `info,smbeam_server=debug`. Default: `info`.
    /// [`Levels`] parses it.
    pub level: Spanned<String>,
    /// Whether the log limits the rate of each message: it omits the lines above the limit, and a
    /// later line has their number. Default: yes.
    pub rate_limited: bool,
}

impl LogSection {
    /// The parsed levels.
    ///
    /// # Errors
    /// The reason, with the key.
    pub(crate) fn levels(&self) -> Result<Levels, String> {
        let levels = self.level.get_ref().parse();
        levels.map_err(|error| format!("log.level: {error}"))
    }
}

impl Default for LogSection {
    fn default() -> Self {
        Self {
            format: LogFormat::Human,
            rate_limited: true,
            level: unplaced("info".to_owned()),
        }
    }
}

/// The value of `log.format`: the format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// One line of text for each event.
    Human,
    /// One JSON object for each event.
    Json,
}

impl std::str::FromStr for LogFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "human" => Ok(Self::Human),
            "json" => Ok(Self::Json),
            _ => Err(format!("unknown format `{text}`: use human or json")),
        }
    }
}

/// A section `[[share]]` of the configuration: a shared directory.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShareSection {
    /// Name of the share, by which clients connect to it. Unequal to the names of other shares, in
    /// upper or lower case.
    pub name: Spanned<String>,
    /// Path of the shared directory on this machine. If the directory is missing, the server
    /// refuses clients of the share until it exists.
    pub path: Spanned<PathBuf>,
    /// Whether the share is read-only: clients cannot change files. Default: no.
    #[serde(default)]
    pub read_only: bool,
    /// Comment of the share in lists of shares. Default: empty.
    #[serde(default)]
    pub comment: String,
    /// Names of the users that may connect to the share. Empty: all users.
    #[serde(default)]
    pub users: Vec<String>,
    /// Whether guests may connect to the share. Default: no.
    #[serde(default)]
    pub guest: bool,
    /// Whether clients with a user name that has no account become guests. If false for all shares
    /// (the default), only clients with the user name `guest` or an empty one become guests. One
    /// share with true is enough, because a login does not name a share. Requires `guest`.
    #[serde(default)]
    pub guest_unknown_users: bool,
    /// Whether the server requires encryption for requests to the share. Default: no.
    #[serde(default)]
    pub encryption_required: bool,
    /// Whether the share is missing in lists of shares. Clients can connect to it by its name.
    /// Default: no.
    #[serde(default)]
    pub hidden: bool,
    /// Whether clients may cache files with oplocks. Default: yes.
    #[serde(default = "yes")]
    pub oplocks: bool,
    /// Whether clients may watch directories for changes (CHANGE_NOTIFY). Default: yes.
    #[serde(default = "yes")]
    pub notify: bool,
    /// Whether large reads and writes bypass the page cache (direct I/O). Default: no.
    #[serde(default)]
    pub direct: bool,
    /// Rule by which the server puts written data on stable storage. Default: when a client
    /// requests it, by a FLUSH or by write-through.
    #[serde(default)]
    pub sync: SyncChoice,
    /// Treatment of Linux file names that SMB cannot transmit, such as names with a colon. Default:
    /// clients see such files under mapped names.
    #[serde(default)]
    pub names: Names,
    /// Name of the Unix user that all file operations on the share run as. `None` (the default)
    /// stands for the Unix account of the session's user.
    #[serde(default)]
    pub force_user: Option<Spanned<String>>,
}

impl ShareSection {
    /// Makes a share of the directory `path` under the name `name`, with default options: every
    /// user with a password may connect. With `read_only` clients cannot change files.
    pub fn new(name: &str, path: &Path, read_only: bool) -> Self {
        Self {
            name: unplaced(name.to_owned()),
            path: unplaced(path.to_owned()),
            read_only,
            comment: String::new(),
            users: Vec::new(),
            guest: false,
            guest_unknown_users: false,
            encryption_required: false,
            hidden: false,
            oplocks: true,
            notify: true,
            direct: false,
            sync: SyncChoice::Flush,
            names: Names::Map,
            force_user: None,
        }
    }
}

/// The value of `names` in a section `[[share]]`: treatment of Linux file names that SMB cannot
/// transmit, such as names with a colon or with a dot at the end. See [`NameMapping`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Names {
    /// Clients see such files under mapped names.
    #[default]
    Map,
    /// Clients do not see such files, and cannot create them.
    Hide,
}

impl From<Names> for NameMapping {
    fn from(names: Names) -> Self {
        match names {
            Names::Map => Self::Map,
            Names::Hide => Self::Hide,
        }
    }
}

fn yes() -> bool {
    true
}

/// An error of a configuration. Its `Display` form names the file, the line and the key.
#[derive(Debug)]
pub struct ConfigError {
    file: PathBuf,
    line: Option<usize>,
    /// Key and reason.
    what: String,
    /// The file cannot be read for this reason.
    unread: Option<std::io::ErrorKind>,
}

impl ConfigError {
    /// Returns the line of the error in the configuration file, from 1; `None` if no single line
    /// causes the error.
    pub fn line(&self) -> Option<usize> {
        self.line
    }

    /// Returns the reason of the error for users, with the configuration key, but without file and
    /// line.
    pub fn reason(&self) -> &str {
        &self.what
    }

    /// Returns the kind of I/O error if the configuration file could not be read; `None` if it was
    /// read and its contents are not valid.
    pub fn unread(&self) -> Option<std::io::ErrorKind> {
        self.unread
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, ", line {line}")?;
        }
        write!(f, ": {}", self.what)
    }
}

impl std::error::Error for ConfigError {}

impl Config {
    /// Reads, parses and checks a configuration file.
    ///
    /// # Errors
    /// The file cannot be read, it is malformed, or a value is invalid.
    pub fn load(file: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(file).map_err(|error| ConfigError {
            file: file.to_owned(),
            line: None,
            what: format!("cannot read the configuration: {error}"),
            unread: Some(error.kind()),
        })?;
        Self::parse(file, &text)
    }

    /// Returns the `log.format` that a configuration file sets, even if the rest of the file is not
    /// valid, so that errors about the file have this format. The default (text) if the file cannot
    /// be read.
    pub fn log_format_of(file: &Path) -> LogFormat {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let mut lines = text.lines().filter_map(|line| line.split_once('='));
        let is_json = |(key, value): (&str, &str)| {
            key.trim() == "format"
                && value
                    .trim_start()
                    .trim_start_matches(['"', '\''])
                    .starts_with("json")
        };
        match lines.any(is_json) {
            true => LogFormat::Json,
            false => LogFormat::Human,
        }
    }

    /// Parses and checks the text `text` of a configuration file. `file` is the name of the file in
    /// errors; the function does not read it. Relative paths start at the directory of `file`.
    ///
    /// # Errors
    /// The text is malformed, or a value is invalid.
    pub fn parse(file: &Path, text: &str) -> Result<Self, ConfigError> {
        let mut config: Self = toml::from_str(text).map_err(|error| ConfigError {
            file: file.to_owned(),
            line: error.span().map(|span| line_of(text, span.start)),
            what: error.message().to_owned(),
            unread: None,
        })?;
        config.source = Source {
            file: file.to_owned(),
            text: text.to_owned(),
        };
        config.resolve(file);
        config.check(&Check { file, text })?;
        Ok(config)
    }

    /// Checks the values of a configuration that does not come from a file, and returns it
    /// unchanged. Error messages name `source` in place of a file.
    ///
    /// # Errors
    /// A value is invalid.
    pub fn checked(self, source: &Path) -> Result<Self, ConfigError> {
        self.check(&Check {
            file: source,
            text: "",
        })?;
        Ok(self)
    }

    fn check(&self, check: &Check<'_>) -> Result<(), ConfigError> {
        check.server(&self.server)?;
        check.listen(&self.server)?;
        check.numbers(self)?;
        check.security(&self.security)?;
        check.tcp(&self.tcp)?;
        check.quic(&self.quic)?;
        check.rdma(&self.rdma)?;
        check.log(&self.log)?;
        check.shares(&self.shares)
    }

    /// Returns the path of the file that the configuration was read from; `None` if it does not
    /// come from a file.
    pub fn file(&self) -> Option<&Path> {
        let file = self.source.file.as_path();
        (!file.as_os_str().is_empty()).then_some(file)
    }

    /// Line of a value in the file, from 1; `None` for a default value.
    pub(crate) fn line<T>(&self, value: &Spanned<T>) -> Option<usize> {
        let is_placed = value.span().end > 0;
        is_placed.then(|| line_of(&self.source.text, value.span().start))
    }

    /// The parsed `server.interfaces`. [`Config::parse`] has checked them.
    pub(crate) fn interfaces(&self) -> Vec<Entry> {
        let interfaces = self.server.interfaces.iter();
        interfaces
            .filter_map(|text| text.get_ref().parse().ok())
            .collect()
    }

    /// Returns the transports and ports to listen with, parsed from `server.transports`. The result
    /// omits texts that are not valid; [`Config::parse`] has refused these.
    pub fn endpoints(&self) -> Vec<Endpoint> {
        self.server
            .transports
            .iter()
            .filter_map(|text| Endpoint::expand(text.get_ref()).ok())
            .flatten()
            .collect()
    }

    /// Returns true if the server listens with this transport.
    pub(crate) fn listens_with(&self, transport: Transport) -> bool {
        let endpoints = self.endpoints();
        endpoints
            .iter()
            .any(|endpoint| endpoint.transport == transport)
    }
}

/// The line number of a byte of a text, from 1.
fn line_of(text: &str, byte: usize) -> usize {
    let before = text.get(..byte).unwrap_or(text);
    before.bytes().filter(|byte| *byte == b'\n').count() + 1
}

/// Checks values, after the parser has checked keys and types.
struct Check<'a> {
    file: &'a Path,
    text: &'a str,
}

impl Check<'_> {
    fn error<T>(&self, at: &Spanned<T>, what: String) -> ConfigError {
        // A default value has no line.
        let line = (at.span().end > 0).then(|| line_of(self.text, at.span().start));
        ConfigError {
            file: self.file.to_owned(),
            line,
            what,
            unread: None,
        }
    }

    fn server(&self, server: &ServerSection) -> Result<(), ConfigError> {
        let mut list = Vec::new();
        for transport in &server.transports {
            let endpoints = Endpoint::expand(transport.get_ref())
                .map_err(|error| self.error(transport, format!("server.transports: {error}")))?;
            list.extend(endpoints);
        }
        if let Err(error) = Endpoints::new(list) {
            let nowhere = unplaced(String::new());
            let last = server.transports.last().unwrap_or(&nowhere);
            return Err(self.error(last, format!("server.transports: {error}")));
        }
        for interface in &server.interfaces {
            interface
                .get_ref()
                .parse::<Entry>()
                .map_err(|error| self.error(interface, format!("server.interfaces: {error}")))?;
        }
        if *server.workers.get_ref() > MAX_WORKERS {
            let what = format!("server.workers: more than {MAX_WORKERS}");
            return Err(self.error(&server.workers, what));
        }
        if !(1..=MAX_BLOCKING_THREADS).contains(server.blocking_threads.get_ref()) {
            let what = format!("server.blocking_threads: use 1 to {MAX_BLOCKING_THREADS}");
            return Err(self.error(&server.blocking_threads, what));
        }
        Ok(())
    }

    fn security(&self, security: &SecuritySection) -> Result<(), ConfigError> {
        for (key, value) in [
            ("min_dialect", &security.min_dialect),
            ("max_dialect", &security.max_dialect),
        ] {
            if dialect(value.get_ref()).is_none() {
                let what = format!(
                    "security.{key}: unknown dialect `{}`: use 2.0.2, 2.1, 3.0, 3.0.2 or 3.1.1",
                    value.get_ref()
                );
                return Err(self.error(value, what));
            }
        }
        if dialect(security.min_dialect.get_ref()) > dialect(security.max_dialect.get_ref()) {
            let what = "security.min_dialect is newer than security.max_dialect".to_owned();
            return Err(self.error(&security.min_dialect, what));
        }
        Ok(())
    }

    fn log(&self, log: &LogSection) -> Result<(), ConfigError> {
        let levels = log.levels();
        levels
            .map(drop)
            .map_err(|what| self.error(&log.level, what))
    }

    fn shares(&self, shares: &[ShareSection]) -> Result<(), ConfigError> {
        for (index, share) in shares.iter().enumerate() {
            self.share(share)?;
            let name = share.name.get_ref();
            let has_name = |other: &ShareSection| is_same_name(other.name.get_ref(), name);
            if shares[..index].iter().any(has_name) {
                return Err(self.error(
                    &share.name,
                    format!("share.name: two shares have the name `{name}`"),
                ));
            }
        }
        Ok(())
    }

    fn share(&self, share: &ShareSection) -> Result<(), ConfigError> {
        let name = share.name.get_ref();
        let is_bad = |c: char| c.is_control() || "\"\\/[]:|<>+=;,*?".contains(c);
        if name.is_empty() || name.len() > MAX_SHARE_NAME || name.contains(is_bad) {
            return Err(self.error(
                &share.name,
                format!("share.name: `{name}` is not a valid share name"),
            ));
        }
        if name.eq_ignore_ascii_case("IPC$") {
            let what = "share.name: the name IPC$ is reserved".to_owned();
            return Err(self.error(&share.name, what));
        }
        let path = share.path.get_ref();
        match std::fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => Ok(()),
            Ok(_) => {
                let what = format!("share.path: {} is not a directory", path.display());
                Err(self.error(&share.path, what))
            }
            // The disk of the directory may be mounted later. `Shares::open` logs it.
            Err(_) => Ok(()),
        }
    }
}

/// The dialect with this name; `None` if there is none.
pub(crate) fn dialect(name: &str) -> Option<wire::dialect::Dialect> {
    use wire::dialect::Dialect;
    match name {
        "2.0.2" => Some(Dialect::SMB_2_0_2),
        "2.1" => Some(Dialect::SMB_2_1),
        "3.0" => Some(Dialect::SMB_3_0),
        "3.0.2" => Some(Dialect::SMB_3_0_2),
        "3.1.1" => Some(Dialect::SMB_3_1_1),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        let parsed = Config::parse(Path::new("smbeam.toml"), text);
        parsed.expect_err("a bad configuration").to_string()
    }

    #[test]
    fn an_empty_file_is_a_server_without_shares() {
        let config = Config::parse(Path::new("smbeam.toml"), "").expect("good");
        assert_eq!(
            config.endpoints(),
            ["tcp:445".parse().expect("an endpoint")]
        );
        assert!(config.shares.is_empty());
    }

    #[test]
    fn the_control_socket_may_be_disabled() {
        let socket = |text: &str| {
            let config = Config::parse(Path::new("smbeam.toml"), text).expect("good");
            config.server.control_socket
        };
        assert_eq!(socket(""), None);
        let empty = socket("[server]\ncontrol_socket = \"\"\n");
        assert_eq!(empty, Some(PathBuf::new()));
    }

    #[test]
    fn errors_name_the_key_and_the_line() {
        let text = "[server]\nworkers = 2\ntransports = [\"tcp\", \"quick:1\"]\n";
        let expected = "smbeam.toml, line 3: server.transports: unknown transport `quick`";
        assert!(error(text).starts_with(expected), "{}", error(text));
        let text = "[server]\ntransports = [\"tcp\", \"445\"]\n";
        let expected = "smbeam.toml, line 2: server.transports: the list has `tcp:445` twice";
        assert_eq!(error(text), expected);
        let text = "[server]\ntransports = []\n";
        assert_eq!(
            error(text),
            "smbeam.toml: server.transports: the list is empty"
        );
        let text = "[server]\n\nworker = 2\n";
        assert!(error(text).starts_with("smbeam.toml, line 3: unknown field `worker`"));
        let text = "[server]\ninterfaces = [\"eth0;rdma\"]\n";
        assert!(error(text).starts_with("smbeam.toml, line 2: server.interfaces: `rdma` is"));
        let text = "[[share]]\nname = \"a\"\npath = \"/dev/null\"\n";
        assert_eq!(
            error(text),
            "smbeam.toml, line 3: share.path: /dev/null is not a directory"
        );
        let text = "[log]\nlevel = \"verbose\"\n";
        let expected = "smbeam.toml, line 2: log.level: unknown level `verbose`: use off, ";
        assert!(error(text).starts_with(expected), "{}", error(text));
        let text = "[security]\nmin_dialect = \"1.0\"\n";
        assert!(
            error(text)
                .starts_with("smbeam.toml, line 2: security.min_dialect: unknown dialect `1.0`")
        );
    }

    #[test]
    fn the_directory_of_a_share_may_be_missing() {
        let text = "[[share]]\nname = \"a\"\npath = \"/no/such/directory\"\n";
        let config = Config::parse(Path::new("smbeam.toml"), text).expect("a good configuration");
        assert_eq!(config.shares.len(), 1);
    }

    #[test]
    fn share_names_are_unique_without_regard_to_case() {
        let text = "[[share]]\nname = \"a\"\npath = \"/\"\n[[share]]\nname = \"A\"\npath = \"/\"\n";
        assert_eq!(
            error(text),
            "smbeam.toml, line 5: share.name: two shares have the name `A`"
        );
    }
}
