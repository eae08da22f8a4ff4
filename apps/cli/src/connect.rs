//! Connections to servers: the options that all client commands share, and the sessions and shares
//! that a command has opened.

mod certificates;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex, OnceLock};
use std::time::Duration;

use clap::Args;
use smbeam_client::{
    Channels, Client, Credentials, Options, QuicSettings, RdmaChoice, Session, Share, TcpOptions,
    Transports, Wait as _,
};
use smbeam_profile::{
    ConnectOptions, DEPTH_MAX, RDMA_BUSY_POLL_MAX_US, RDMA_VARIABLE, SessionKey, parse_channels,
    parse_dialect, parse_io_size, parse_threshold, parse_transports,
};
use wire::dialect::Dialect;
use wire::upcase::upcased;

use crate::client_failure::failure_of;
use crate::credentials::{LoginArguments, credentials_for};
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::file_path::{Detail, ExpandedPath, FilePath, LocalPath, RemotePath};
use crate::location::{Location, Url};
use crate::log::LogArguments;
use crate::mutex::lock;
use crate::names::LocalNames;
use crate::output::note;
use certificates::CertificateArguments;

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
        value_parser = parse_channels
    )]
    pub(crate) channels: Channels,
    /// Transports to try in this order: `transport[:port]` with tcp, nbt, quic or smbdirect. `auto`
    /// begins with tcp and changes to SMB Direct if both ends support it.
    #[arg(
        long,
        value_name = "LIST|auto",
        default_value = "tcp",
        value_parser = parse_transports
    )]
    pub(crate) transports: Transports,
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
        env = RDMA_VARIABLE
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
        value_parser = clap::value_parser!(u64).range(..=RDMA_BUSY_POLL_MAX_US)
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
        value_parser = clap::value_parser!(u64).range(1..=DEPTH_MAX)
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

impl ConnectArguments {
    /// The options for the library.
    pub(crate) fn profile(&self) -> ConnectOptions {
        ConnectOptions {
            channels: self.channels.clone(),
            transports: self.transports.clone(),
            tcp: self.tcp.clone().unwrap_or_default(),
            quic: self.quic.clone().unwrap_or_default(),
            rdma: Some(self.rdma.clone()),
            sign: self.sign,
            encrypt: self.encrypt,
            transport_security: self.transport_security,
            rdma_threshold: self.rdma_threshold,
            rdma_busy_poll: Duration::from_micros(self.rdma_busy_poll),
            no_leases: self.no_leases,
            no_durable: self.no_durable,
            no_posix: self.no_posix,
            dialect: self.dialect,
            max_protocol: self.max_protocol,
            io_size: self.io_size,
            depth: self.depth.map(|depth| depth as usize),
            timeout: Duration::from_secs(self.timeout),
            certificates: self.certificates.certificates(),
            login: self.login.login(),
        }
    }

    /// The options for a client that connects to `url`.
    pub(crate) fn options(&self, url: &Url) -> Outcome<Options> {
        build(&self.profile(), url)
    }

    /// Finds the credentials for the server or share of `url`. It asks for a password if none is
    /// given.
    pub(crate) fn credentials(&self, url: &Url) -> Outcome<Credentials> {
        credentials_for(&self.login.login(), url)
    }
}

/// Builds the options for the client library. Prints a warning if the server is not verified.
fn build(options: &ConnectOptions, url: &Url) -> Outcome<Options> {
    if options.certificates.insecure {
        note(
            &"smbeam: WARNING: --insecure: the identity of the server is not verified; an \
              attacker can read and change all data",
        );
    }
    let built = options.build();
    built.map_err(|error| Failure::usage(url, error))
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
    options: ConnectOptions,
    opened: &'static Opened,
    names: LocalNames,
    /// `None` selects the default of the library.
    reconnect: Option<Duration>,
}

impl Connector {
    /// Prepares connections with these options. It does not connect.
    pub(crate) fn new(arguments: &ConnectArguments) -> Self {
        Self::with_options(arguments.profile())
    }

    /// Prepares connections with options that are not those of the command line alone.
    pub(crate) fn with_options(options: ConnectOptions) -> Self {
        Self {
            options,
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
        let mut options = build(&self.options, url)?;
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
        let credentials = credentials_for(&self.options.login, url)?;
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
    use clap::{CommandFactory as _, Parser as _};

    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        connect: ConnectArguments,
    }

    fn parse(words: &[&str]) -> ConnectOptions {
        let line = [&["smbeam"], words].concat();
        Line::try_parse_from(line)
            .expect("options")
            .connect
            .profile()
    }

    #[test]
    fn seal_is_an_older_name_of_encrypt() {
        for name in ["--encrypt", "--seal"] {
            assert!(parse(&[name]).encrypt);
        }
    }

    /// Programs that set options by name, and options of remotes, have those of the command line.
    #[test]
    fn the_options_have_the_names_and_defaults_of_the_library() {
        let command = Line::command();
        let of_log = ["verbose", "log_level", "help"];
        let ids = command.get_arguments().map(|it| it.get_id().as_str());
        let mut here: Vec<_> = ids.filter(|id| !of_log.contains(id)).collect();
        // The command line has the domain in --user.
        here.push("domain");
        let mut there: Vec<_> = ConnectOptions::names().collect();
        here.sort_unstable();
        there.sort_unstable();
        assert_eq!(here, there);
        let default = ConnectOptions {
            rdma: parse(&[]).rdma,
            ..ConnectOptions::default()
        };
        assert_eq!(format!("{:?}", parse(&[])), format!("{default:?}"));
    }

    /// Each option has the same effect in both forms.
    #[test]
    fn the_options_have_the_values_of_the_library() {
        let pin = "ab".repeat(32);
        for (name, value) in [
            ("channels", "tcp,quic"),
            ("transports", "quic,tcp"),
            ("tcp", "delay"),
            ("quic", "datagram=1400"),
            ("rdma", "emulated:/x"),
            ("sign", ""),
            ("encrypt", ""),
            ("transport-security", ""),
            ("rdma-threshold", "8k"),
            ("rdma-busy-poll", "7"),
            ("no-leases", ""),
            ("no-durable", ""),
            ("no-posix", ""),
            ("dialect", "3.0"),
            ("max-protocol", "3.0.2"),
            ("io-size", "64k"),
            ("depth", "8"),
            ("timeout", "5"),
            ("ca-file", "ca.pem"),
            ("pin-sha256", &pin),
            ("insecure", ""),
            ("allow-address", ""),
            ("client-cert", "c.pem"),
            ("user", "W\\alice"),
            ("password-file", "p"),
            ("credentials", "c.toml"),
            ("anonymous", ""),
            ("guest", ""),
        ] {
            let word = match value {
                "" => format!("--{name}"),
                value => format!("--{name}={value}"),
            };
            let by_clap = parse(&[&word]);
            let mut by_name = parse(&[]);
            by_name.set(name, value).expect(name);
            let mut by_word = parse(&[]);
            by_word.set_arguments(&[&word]).expect("an option");
            assert_eq!(format!("{by_clap:?}"), format!("{by_name:?}"), "{name}");
            assert_eq!(format!("{by_clap:?}"), format!("{by_word:?}"), "{name}");
        }
    }
}
