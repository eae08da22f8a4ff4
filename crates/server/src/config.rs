//! `smbeam.toml`: what a server is told, and what is wrong with it, by key and line.

mod quic;
mod rdma;
mod tcp;

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use net::{Endpoint, Endpoints, Transport};
use serde::Deserialize;
use toml::Spanned;

use crate::interfaces::Entry;

pub use self::rdma::{RdmaProvider, RdmaSection};
pub use quic::{ClientChoice, CongestionChoice, QuicSection, TransportSecurity};
pub use tcp::{PlacementChoice, TcpSection};

/// A value that stands in no file.
pub fn unplaced<T>(value: T) -> Spanned<T> {
    Spanned::new(0..0, value)
}

/// Bytes of the longest share name. \[MS-SRVS\] calls 80 characters the most a client shows.
const MAX_SHARE_NAME: usize = 80;
/// Worker threads at most: more than any machine has cores today.
const MAX_WORKERS: usize = 1024;

/// What `smbeam.toml` says.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// `[server]`
    #[serde(default)]
    pub server: ServerSection,
    /// `[security]`
    #[serde(default)]
    pub security: SecuritySection,
    /// `[tcp]`
    #[serde(default)]
    pub tcp: TcpSection,
    /// `[quic]`
    #[serde(default)]
    pub quic: QuicSection,
    /// `[rdma]`
    #[serde(default)]
    pub rdma: RdmaSection,
    /// `[limits]`
    #[serde(default)]
    pub limits: LimitsSection,
    /// `[log]`
    #[serde(default)]
    pub log: LogSection,
    /// `[[share]]`
    #[serde(default, rename = "share")]
    pub shares: Vec<ShareSection>,
}

/// `[server]`: where it listens and with how many threads.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServerSection {
    /// The name that clients see; the host's own where there is none.
    pub name: Option<String>,
    /// What a list of servers says about it.
    pub comment: String,
    /// Addresses.
    pub listen: Vec<IpAddr>,
    /// `transport[:port]` each.
    pub transports: Vec<Spanned<String>>,
    /// The file of users.
    pub users: Option<PathBuf>,
    /// The control socket: a path of its own, or `""` for none. The run folder's without it.
    pub control_socket: Option<PathBuf>,
    /// Worker threads; 0 is one for each core.
    pub workers: Spanned<usize>,
    /// What moves the bytes.
    pub io: IoChoice,
    /// Megabytes of buffers for each worker.
    pub buffer_memory_mb: usize,
    /// Whether several connections may carry one session.
    pub multichannel: bool,
    /// Which interfaces clients are told of: `NAME-OR-ADDRESS[;speed=BITS][;rss]` each. Empty:
    /// those that it listens on.
    pub interfaces: Vec<Spanned<String>>,
}

impl Default for ServerSection {
    fn default() -> Self {
        Self {
            name: None,
            comment: "smbeam".to_owned(),
            listen: vec![IpAddr::from([0, 0, 0, 0])],
            transports: vec![unplaced("tcp".to_owned())],
            users: None,
            control_socket: None,
            workers: unplaced(0),
            io: IoChoice::Auto,
            buffer_memory_mb: 256,
            multichannel: true,
            interfaces: Vec::new(),
        }
    }
}

/// `io`: what moves the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IoChoice {
    /// io_uring where it is to be had, epoll elsewhere.
    Auto,
    /// io_uring, or no start.
    Uring,
    /// epoll.
    Epoll,
}

impl std::str::FromStr for IoChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "uring" => Ok(Self::Uring),
            "epoll" => Ok(Self::Epoll),
            _ => Err(format!("`{text}` is none of auto, uring, epoll")),
        }
    }
}

/// `[security]`: who must sign and seal.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SecuritySection {
    /// Every message of a session must be signed.
    pub signing_required: bool,
    /// Every session must be sealed. Shuts out dialects before 3.0.
    pub encryption_required: bool,
    /// Oldest dialect: "2.0.2", "2.1", "3.0", "3.0.2", "3.1.1".
    pub min_dialect: Spanned<String>,
    /// Newest dialect.
    pub max_dialect: Spanned<String>,
    /// A failed login is answered no sooner than this.
    pub failed_login_delay_ms: u64,
}

impl Default for SecuritySection {
    fn default() -> Self {
        Self {
            signing_required: false,
            encryption_required: false,
            min_dialect: unplaced("2.0.2".to_owned()),
            max_dialect: unplaced("3.1.1".to_owned()),
            failed_login_delay_ms: 2000,
        }
    }
}

/// `[limits]`: what one peer may use up.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsSection {
    /// Connections in all.
    pub connections: usize,
    /// Connections in all that have not logged in yet.
    pub half_open: usize,
    /// Connections of one address that have not logged in yet.
    pub half_open_per_address: usize,
    /// How long a connection may take to log in.
    pub login_timeout_ms: u64,
    /// How long a frame that has begun may take to arrive.
    pub frame_timeout_ms: u64,
    /// How long an answer may wait for a client of SMB Direct to grant a credit.
    pub credit_timeout_ms: u64,
    /// Bytes of a frame before a login.
    pub frame_before_login: usize,
    /// Credits of one connection.
    pub credits: u16,
    /// Sessions of one connection.
    pub sessions_per_connection: usize,
    /// Connections of one session.
    pub channels_per_session: usize,
    /// Opens of one session.
    pub opens_per_session: usize,
    /// How long running requests may take to finish when the server is told to stop.
    pub shutdown_ms: u64,
}

impl Default for LimitsSection {
    fn default() -> Self {
        let proto = proto::server::config::Limits::default();
        Self {
            connections: 16_384,
            half_open: 4096,
            half_open_per_address: 256,
            login_timeout_ms: millis(proto.login_timeout),
            frame_timeout_ms: 60_000,
            credit_timeout_ms: 60_000,
            frame_before_login: proto.frame_before_login,
            credits: proto.credits,
            sessions_per_connection: proto.sessions_per_connection,
            channels_per_session: proto.channels_per_session,
            opens_per_session: proto.opens_per_session,
            shutdown_ms: 10_000,
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// `[log]`: what is said, and how.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LogSection {
    /// For people or for machines.
    pub format: LogFormat,
    /// `error`, `warn`, `info`, `debug`, `trace`, or a filter such as `info,server=debug`.
    pub level: Spanned<String>,
}

impl Default for LogSection {
    fn default() -> Self {
        Self {
            format: LogFormat::Human,
            level: unplaced("info".to_owned()),
        }
    }
}

/// `format`: for whom the log is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// A line of text an event.
    Human,
    /// A JSON object an event.
    Json,
}

/// `[[share]]`: a folder that is shared.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShareSection {
    /// Its name.
    pub name: Spanned<String>,
    /// The folder.
    pub path: Spanned<PathBuf>,
    /// Nobody writes.
    #[serde(default)]
    pub read_only: bool,
    /// What a list of shares says about it.
    #[serde(default)]
    pub comment: String,
    /// Who may enter; empty: every user.
    #[serde(default)]
    pub users: Vec<String>,
    /// Whether guests may enter.
    #[serde(default)]
    pub guest: bool,
    /// Its requests must be sealed.
    #[serde(default)]
    pub encryption_required: bool,
    /// Not shown in a list of shares.
    #[serde(default)]
    pub hidden: bool,
    /// Clients may cache what they open.
    #[serde(default = "yes")]
    pub oplocks: bool,
    /// Clients may watch its directories.
    #[serde(default = "yes")]
    pub notify: bool,
    /// Large reads and writes go past the page cache.
    #[serde(default)]
    pub direct: bool,
    /// Every file operation runs as this Unix user.
    #[serde(default)]
    pub force_user: Option<Spanned<String>>,
}

impl ShareSection {
    /// A folder shared with everybody who has a password.
    pub fn folder(name: &str, path: &Path, read_only: bool) -> Self {
        Self {
            name: unplaced(name.to_owned()),
            path: unplaced(path.to_owned()),
            read_only,
            comment: String::new(),
            users: Vec::new(),
            guest: false,
            encryption_required: false,
            hidden: false,
            oplocks: true,
            notify: true,
            direct: false,
            force_user: None,
        }
    }
}

fn yes() -> bool {
    true
}

/// What is wrong with a configuration, and where.
#[derive(Debug)]
pub struct ConfigError {
    file: PathBuf,
    line: Option<usize>,
    what: String,
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
    /// Reads and checks a file.
    pub fn load(file: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(file).map_err(|error| ConfigError {
            file: file.to_owned(),
            line: None,
            what: format!("cannot be read: {error}"),
        })?;
        Self::parse(file, &text)
    }

    /// Reads and checks the text of a file.
    pub fn parse(file: &Path, text: &str) -> Result<Self, ConfigError> {
        let config: Self = toml::from_str(text).map_err(|error| ConfigError {
            file: file.to_owned(),
            line: error.span().map(|span| line_of(text, span.start)),
            what: error.message().to_owned(),
        })?;
        config.check(&Check { file, text })?;
        Ok(config)
    }

    /// Checks a configuration that was made without a file; `source` stands for it in errors.
    pub fn checked(self, source: &Path) -> Result<Self, ConfigError> {
        self.check(&Check {
            file: source,
            text: "",
        })?;
        Ok(self)
    }

    fn check(&self, check: &Check<'_>) -> Result<(), ConfigError> {
        check.server(&self.server)?;
        check.security(&self.security)?;
        check.tcp(&self.tcp)?;
        check.quic(&self.quic)?;
        check.rdma(&self.rdma)?;
        check.shares(&self.shares)
    }

    /// The interfaces that clients are told of, checked by [`Config::parse`].
    pub(crate) fn interfaces(&self) -> Vec<Entry> {
        let interfaces = self.server.interfaces.iter();
        interfaces
            .filter_map(|text| text.get_ref().parse().ok())
            .collect()
    }

    /// Where it listens: every transport, checked by [`Config::parse`].
    pub fn endpoints(&self) -> Vec<Endpoint> {
        self.server
            .transports
            .iter()
            .filter_map(|text| Endpoint::expand(text.get_ref()).ok())
            .flatten()
            .collect()
    }

    /// Whether it listens by a transport.
    pub(crate) fn listens_by(&self, transport: Transport) -> bool {
        let endpoints = self.endpoints();
        endpoints
            .iter()
            .any(|endpoint| endpoint.transport == transport)
    }
}

/// The line of a byte of a text; the first is 1.
fn line_of(text: &str, byte: usize) -> usize {
    let before = text.get(..byte).unwrap_or(text);
    before.bytes().filter(|byte| *byte == b'\n').count() + 1
}

/// Checks what the shape of the file does not.
struct Check<'a> {
    file: &'a Path,
    text: &'a str,
}

impl Check<'_> {
    fn error<T>(&self, at: &Spanned<T>, what: String) -> ConfigError {
        // A default value has no place in the file.
        let line = (at.span().end > 0).then(|| line_of(self.text, at.span().start));
        ConfigError {
            file: self.file.to_owned(),
            line,
            what,
        }
    }

    fn server(&self, server: &ServerSection) -> Result<(), ConfigError> {
        let mut list = Vec::new();
        for transport in &server.transports {
            let meant = Endpoint::expand(transport.get_ref())
                .map_err(|error| self.error(transport, format!("server.transports: {error}")))?;
            list.extend(meant);
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
            let what = format!("server.workers: {MAX_WORKERS} at most");
            return Err(self.error(&server.workers, what));
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
                    "security.{key}: `{}` is no dialect; there are 2.0.2, 2.1, 3.0, 3.0.2, 3.1.1",
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

    fn shares(&self, shares: &[ShareSection]) -> Result<(), ConfigError> {
        for (index, share) in shares.iter().enumerate() {
            self.share(share)?;
            let name = share.name.get_ref();
            let is_twin = |other: &ShareSection| other.name.get_ref().eq_ignore_ascii_case(name);
            if shares[..index].iter().any(is_twin) {
                return Err(self.error(&share.name, format!("share.name: `{name}` twice")));
            }
        }
        Ok(())
    }

    fn share(&self, share: &ShareSection) -> Result<(), ConfigError> {
        let name = share.name.get_ref();
        let is_bad = |c: char| c.is_control() || "\"\\/[]:|<>+=;,*?".contains(c);
        if name.is_empty() || name.len() > MAX_SHARE_NAME || name.contains(is_bad) {
            return Err(self.error(&share.name, format!("share.name: `{name}` is not a name")));
        }
        if name.eq_ignore_ascii_case("IPC$") {
            let what = "share.name: IPC$ is the server's own".to_owned();
            return Err(self.error(&share.name, what));
        }
        let path = share.path.get_ref();
        match std::fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => Ok(()),
            Ok(_) => {
                let what = format!("share.path: {} is not a folder", path.display());
                Err(self.error(&share.path, what))
            }
            Err(error) => Err(self.error(
                &share.path,
                format!("share.path: {}: {error}", path.display()),
            )),
        }
    }
}

/// A dialect by its name.
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
    fn the_control_socket_may_be_none_at_all() {
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
        let expected = "smbeam.toml, line 2: server.transports: `tcp:445` twice";
        assert_eq!(error(text), expected);
        let text = "[server]\ntransports = []\n";
        assert_eq!(
            error(text),
            "smbeam.toml: server.transports: no transport is named"
        );
        let text = "[server]\n\nworker = 2\n";
        assert!(error(text).starts_with("smbeam.toml, line 3: unknown field `worker`"));
        let text = "[server]\ninterfaces = [\"eth0;rdma\"]\n";
        assert!(error(text).starts_with("smbeam.toml, line 2: server.interfaces: `rdma` is"));
        let text = "[[share]]\nname = \"a\"\npath = \"/no/such/folder\"\n";
        assert!(error(text).starts_with("smbeam.toml, line 3: share.path: /no/such/folder: "));
        let text = "[security]\nmin_dialect = \"1.0\"\n";
        assert!(error(text).starts_with("smbeam.toml, line 2: security.min_dialect: `1.0`"));
    }

    #[test]
    fn share_names_are_unique_without_regard_to_case() {
        let text = "[[share]]\nname = \"a\"\npath = \"/\"\n[[share]]\nname = \"A\"\npath = \"/\"\n";
        assert_eq!(error(text), "smbeam.toml, line 5: share.name: `A` twice");
    }
}
