//! Connections to servers: the options that all client commands share, and the sessions and shares
//! that a command has opened.

mod certificates;
mod transports;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex, OnceLock};
use std::time::Duration;

use clap::Args;
use smbeam_client::{
    Channels, Client, Options, Protection, QuicSettings, RdmaChoice, Session, Share, TcpOptions,
    Transports, Wait as _,
};
use wire::dialect::Dialect;
use wire::upcase::upcased;

use crate::client_failure::failure_of;
use crate::credentials::LoginArguments;
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::file_path::{Detail, ExpandedPath, FilePath, LocalPath, RemotePath};
use crate::format::parse_size;
use crate::location::{Location, Url};
use crate::log::LogArguments;
use crate::mutex::lock;
use crate::names::LocalNames;
use crate::session_key::SessionKey;
use certificates::CertificateArguments;

/// Allowed bytes per READ or WRITE. 16 MiB is the largest message of direct TCP. \[MS-SMB2\] 2.1
const IO_SIZES: std::ops::RangeInclusive<u64> = 4096..=16 << 20;
/// Maximum number of requests in flight for one file.
const MAX_DEPTH: u64 = 1024;

/// Options for the connection.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Connection")]
pub(crate) struct ConnectArguments {
    /// Connections of the session: a number; `auto`, which depends on the network interfaces of the
    /// server; or the transport of each connection, such as `tcp,quic,quic`.
    #[arg(
        long,
        value_name = "N|auto|LIST",
        default_value = "auto",
        value_parser = transports::parse_channels
    )]
    pub(crate) channels: Channels,
    /// Transports to try in this order: `transport[:port]` with tcp, nbt, quic or smbdirect. `auto`
    /// begins with tcp and changes to SMB Direct if both ends support it.
    #[arg(
        long,
        value_name = "LIST|auto",
        default_value = "tcp",
        value_parser = transports::parse_transports
    )]
    transports: Transports,
    /// Socket options of TCP connections: delay, quick-ack, keep-alive=IDLE:INTERVAL:COUNT or
    /// keep-alive=off, user-timeout=SECONDS.
    #[arg(long, value_name = "OPTION,...")]
    tcp: Option<TcpOptions>,
    /// Options of QUIC connections: congestion=cubic|bbr|newreno, receive-window=KIB,
    /// send-window=KIB, datagram=BYTES, idle-timeout=SECONDS, keep-alive=SECONDS or keep-alive=off.
    #[arg(long, value_name = "OPTION,...")]
    quic: Option<QuicSettings>,
    /// RDMA provider for smbdirect: `verbs` for RDMA devices, or `emulated:DIRECTORY` for a server
    /// on this machine.
    #[arg(
        long,
        value_name = "PROVIDER",
        default_value = "verbs",
        env = "SMBEAM_RDMA"
    )]
    rdma: RdmaChoice,
    /// Sign all requests, and require that the server signs all responses.
    #[arg(long, conflicts_with = "encrypt")]
    sign: bool,
    /// Encrypt all messages in both directions (needs SMB 3.0 or later).
    #[arg(long, alias = "seal")]
    encrypt: bool,
    /// Over QUIC, accept the encryption of TLS where the server requires SMB encryption, so that
    /// data are not encrypted twice. The certificate of the server must be verified.
    #[arg(long, conflicts_with = "encrypt")]
    transport_security: bool,
    /// Smallest request with data that SMB Direct transfers by RDMA. Smaller requests carry their
    /// data in the message.
    #[arg(long, value_name = "BYTES", default_value = "4KiB", value_parser = parse_threshold)]
    rdma_threshold: u32,
    /// Time for which an SMB Direct connection polls for more data before its thread sleeps, in
    /// microseconds (at most 10000).
    #[arg(
        long,
        value_name = "MICROSECONDS",
        default_value = "0",
        value_parser = clap::value_parser!(u64).range(..=10_000)
    )]
    rdma_busy_poll: u64,
    /// Do not request leases, the permission to cache open files. Without leases the server also
    /// closes open files when the connection is lost.
    #[arg(long)]
    no_leases: bool,
    /// Do not ask the server to keep files open while the connection is lost.
    #[arg(long)]
    no_durable: bool,
    /// Do not ask for the SMB3 POSIX extensions. --archive then keeps DOS attributes and times of
    /// creation instead of what Linux has.
    #[arg(long)]
    no_posix: bool,
    /// Use only this SMB dialect: 2.0.2, 2.1, 3.0, 3.0.2 or 3.1.1.
    #[arg(long, value_name = "DIALECT", value_parser = parse_dialect)]
    dialect: Option<Dialect>,
    /// Use this SMB dialect or an older one.
    #[arg(long, value_name = "DIALECT", value_parser = parse_dialect, conflicts_with = "dialect")]
    max_protocol: Option<Dialect>,
    /// Bytes per read or write request [default: 1MiB; up to 4MiB for large files over TCP].
    #[arg(long, value_name = "BYTES", value_parser = parse_io_size)]
    pub(crate) io_size: Option<u32>,
    /// Requests in flight per large file [default: 16; transfers over QUIC: 32; over TCP 16MiB in
    /// total, less for uploads to a server on this machine].
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u64).range(1..=MAX_DEPTH)
    )]
    pub(crate) depth: Option<u64>,
    /// Time limit in seconds for a connection, a login (at most 30) or a response. 0 waits for
    /// responses without limit.
    #[arg(long, value_name = "SECONDS", default_value = "60")]
    timeout: u64,
    // Flattened arguments come last, because later arguments would get their help heading.
    #[command(flatten)]
    certificates: CertificateArguments,
    #[command(flatten)]
    pub(crate) login: LoginArguments,
    #[command(flatten)]
    pub(crate) log: LogArguments,
}

fn parse_dialect(text: &str) -> Result<Dialect, String> {
    match text.to_ascii_lowercase().as_str() {
        "2.0.2" | "2.02" | "smb2_02" => Ok(Dialect::SMB_2_0_2),
        "2.1" | "2.1.0" | "smb2_10" => Ok(Dialect::SMB_2_1),
        "3.0" | "3.0.0" | "smb3_00" => Ok(Dialect::SMB_3_0),
        "3.0.2" | "3.02" | "smb3_02" => Ok(Dialect::SMB_3_0_2),
        "3.1.1" | "3.11" | "smb3_11" | "smb3" => Ok(Dialect::SMB_3_1_1),
        _ => Err("expected 2.0.2, 2.1, 3.0, 3.0.2 or 3.1.1".into()),
    }
}

fn parse_io_size(text: &str) -> Result<u32, String> {
    let size = parse_size(text)?;
    u32::try_from(size)
        .ok()
        .filter(|_| IO_SIZES.contains(&size))
        .ok_or_else(|| "expected 4KiB to 16MiB".into())
}

fn parse_threshold(text: &str) -> Result<u32, String> {
    u32::try_from(parse_size(text)?).map_err(|_| "expected less than 4GiB".into())
}

impl ConnectArguments {
    /// Sets `--channels` from text.
    pub(crate) fn set_channels(&mut self, text: &str) -> Result<(), String> {
        self.channels = transports::parse_channels(text)?;
        Ok(())
    }

    /// Sets `--transports` from text.
    pub(crate) fn set_transports(&mut self, text: &str) -> Result<(), String> {
        self.transports = transports::parse_transports(text)?;
        Ok(())
    }

    pub(crate) fn options(&self) -> Options {
        let mut options = Options::default()
            .channels(self.channels.clone())
            .transports(self.transports.clone())
            .tcp(self.tcp.clone().unwrap_or_default())
            .quic(self.quic.clone().unwrap_or_default())
            .tls(self.certificates.settings())
            .transport_security(self.transport_security)
            .rdma(self.rdma.clone())
            .rdma_threshold(self.rdma_threshold)
            .rdma_busy_poll(Duration::from_micros(self.rdma_busy_poll))
            .protection(match (self.sign, self.encrypt) {
                (_, true) => Protection::Encrypt,
                (true, false) => Protection::Sign,
                (false, false) => Protection::AsAsked,
            })
            .io_size(self.io_size.unwrap_or(0))
            .depth(self.depth.unwrap_or(0) as usize)
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
        let timeout = Duration::from_secs(self.timeout);
        options.request_timeout = (self.timeout > 0).then_some(timeout);
        if self.timeout > 0 {
            options.connect_timeout = timeout;
            options.login_timeout = options.login_timeout.min(timeout);
        }
        options
    }
}

/// The sessions and shares that this process has opened. They stay open until the process ends.
/// Then [`log_off`] closes all sessions at once, and the kernel releases threads and memory.
static OPENED: LazyLock<Opened> = LazyLock::new(Opened::default);

#[derive(Default)]
struct Opened {
    client: OnceLock<Client>,
    sessions: Mutex<HashMap<SessionKey, Session>>,
    shares: Mutex<HashMap<(SessionKey, String), Share>>,
}

/// Logs off all sessions. A command calls it last.
pub(crate) fn log_off() {
    if let Some(client) = OPENED.client.get() {
        client.log_off().wait();
    }
}

/// Opens sessions and shares. Further requests for the same session or share get the open one.
pub(crate) struct Connector {
    arguments: ConnectArguments,
    opened: &'static Opened,
    names: LocalNames,
    /// `None` selects the default of the library.
    reconnect: Option<Duration>,
}

impl Connector {
    /// Prepares connections with these options. It does not connect.
    pub(crate) fn new(arguments: &ConnectArguments) -> Self {
        Self {
            arguments: arguments.clone(),
            opened: &OPENED,
            names: LocalNames::default(),
            reconnect: None,
        }
    }

    /// Sets how long sessions try to reconnect after the connection is lost.
    pub(crate) fn reconnect(mut self, limit: Duration) -> Self {
        self.reconnect = Some(limit);
        self
    }

    /// Sets how names pass between local paths and servers.
    pub(crate) fn local_names(mut self, names: LocalNames) -> Self {
        self.names = names;
        self
    }

    fn local_path(&self, path: &Path) -> FilePath {
        FilePath::Local(LocalPath::new(path, self.names))
    }

    fn client(&self, url: &Url) -> Outcome<Client> {
        if let Some(client) = self.opened.client.get() {
            return Ok(client.clone());
        }
        let mut options = self.arguments.options();
        if let Some(limit) = self.reconnect {
            options.reconnect_timeout = limit;
        }
        let client = Client::new(options).map_err(|error| failure_of(url, &error))?;
        Ok(self.opened.client.get_or_init(|| client).clone())
    }

    /// Returns the session for `url`. Connects and logs in if there is none.
    pub(crate) fn session(&self, url: &Url) -> Outcome<Session> {
        let key = SessionKey::of(url);
        let mut sessions = lock(&self.opened.sessions);
        if let Some(session) = sessions.get(&key) {
            return Ok(session.clone());
        }
        let credentials = self.arguments.login.for_url(url)?;
        let session = self
            .client(url)?
            .connect(&url.host, url.port, &credentials)
            .wait()
            .map_err(|error| failure_of(url, &error))?;
        sessions.insert(key, session.clone());
        Ok(session)
    }

    /// Returns the share of `url`. Connects to it if it is not open.
    pub(crate) fn share(&self, url: &Url) -> Outcome<Share> {
        let Some(name) = &url.share else {
            return Err(Failure::usage(
                url,
                "the URL names no share: expected smb://host/share (`smbeam shares` lists shares)",
            ));
        };
        let key = (SessionKey::of(url), upcased(name));
        if let Some(share) = lock(&self.opened.shares).get(&key) {
            return Ok(share.clone());
        }
        let session = self.session(url)?;
        let share = session
            .share(name)
            .wait()
            .map_err(|error| failure_of(&url.with_path(""), &error))?;
        lock(&self.opened.shares).insert(key, share.clone());
        Ok(share)
    }

    /// Resolves a URL to a path on its share.
    pub(crate) fn remote_path(&self, url: &Url) -> Outcome<RemotePath> {
        Ok(RemotePath {
            share: self.share(url)?,
            path: url.path.clone(),
            root: Arc::new(url.with_path("")),
        })
    }

    /// Resolves a URL to a path on its share.
    pub(crate) fn file_path(&self, url: &Url) -> Outcome<FilePath> {
        self.remote_path(url).map(FilePath::Remote)
    }

    /// Resolves a URL. Its last component can contain the wildcards `*` and `?`. A `/` at the end
    /// of the URL selects only directories.
    pub(crate) fn expand(&self, url: &Url, detail: Detail) -> Outcome<Vec<ExpandedPath>> {
        let remote = self.remote_path(url)?;
        let wants_directories = url.is_directory && !url.path.is_empty();
        if !url.name().contains(['*', '?']) {
            let found = ExpandedPath::named(FilePath::Remote(remote));
            if wants_directories && found.is_directory()? == Some(false) {
                return Err(Failure::usage(url, "not a directory"));
            }
            return Ok(vec![found]);
        }
        let mut found = remote.matching(url.name(), detail)?;
        if wants_directories {
            found = directories(found)?;
        }
        if found.is_empty() {
            return Err(Failure::new(
                Exit::NotFound,
                url,
                "no file or directory matches this pattern",
            ));
        }
        Ok(found)
    }

    /// Resolves a location as [`Self::expand`] does. The shell expands wildcards of local paths.
    pub(crate) fn expand_location(&self, location: &Location) -> Outcome<Vec<ExpandedPath>> {
        match location {
            Location::Local(path) => Ok(vec![ExpandedPath::named(self.local_path(path))]),
            Location::Remote(url) => self.expand(url, Detail::Brief),
        }
    }

    /// Resolves a location. It does not expand wildcards.
    pub(crate) fn resolve(&self, location: &Location) -> Outcome<FilePath> {
        Ok(match location {
            Location::Local(path) => self.local_path(path),
            Location::Remote(url) => FilePath::Remote(self.remote_path(url)?),
        })
    }
}

fn directories(found: Vec<ExpandedPath>) -> Outcome<Vec<ExpandedPath>> {
    let mut directories = Vec::new();
    for found in found {
        if found.is_directory()? == Some(true) {
            directories.push(found);
        }
    }
    Ok(directories)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dialects_have_two_spellings() {
        assert_eq!(parse_dialect("3.1.1"), Ok(Dialect::SMB_3_1_1));
        assert_eq!(parse_dialect("SMB2_10"), Ok(Dialect::SMB_2_1));
        assert!(parse_dialect("1").is_err());
    }

    #[test]
    fn seal_is_an_older_name_of_encrypt() {
        use clap::Parser as _;

        #[derive(Debug, clap::Parser)]
        struct Line {
            #[command(flatten)]
            connect: ConnectArguments,
        }

        for name in ["--encrypt", "--seal"] {
            let line = Line::try_parse_from(["smbeam", name]).expect("an option");
            assert_eq!(line.connect.options().protection, Protection::Encrypt);
        }
    }

    #[test]
    fn a_request_has_its_size() {
        assert_eq!(parse_io_size("64k"), Ok(65_536));
        assert!(parse_io_size("1k").is_err());
        assert!(parse_io_size("17M").is_err());
    }
}
