//! The server under test: `smbeam serve` from this workspace, or the lab's smbd as a control.
//!
//! A [`Plan`] describes the server in terms that both support; [`Server`] is the
//! running process. It is killed with the value, and its log is shown when the test panics.

mod binary;
mod samba;
mod smbeam;

use std::env;
use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use toml::Value;

use crate::http;
use crate::lab::Lab;
use crate::namespace::{HOST_ADDRESS, Namespace};
use crate::ports::ReservedPort;
use crate::scratch::Scratch;
use crate::wait;

/// The users that every server knows and the lab's root file system has ids for.
pub const USERS: [User; 2] = [
    User {
        name: "alice",
        password: "Wonderland-7",
        id: 2001,
    },
    User {
        name: "bob",
        password: "Builder:9 x",
        id: 2002,
    },
];
/// The first of the users.
pub const ALICE: User = USERS[0];
/// The second of the users.
pub const BOB: User = USERS[1];

/// A user that may set every owner. A server has it if its plan does.
pub const ROOT: User = User {
    name: "root",
    password: "Superuser-7",
    id: 0,
};

/// The transports over which all tests of our own client run, and on which smbeam listens. A new
/// transport in this list is tested everywhere. Exceptions:
///
/// - Clients reach smbd over TCP, and over NetBIOS where the agreement itself is tested: its QUIC
///   needs a module of the kernel, and it has no SMB Direct.
/// - A message of NetBIOS holds at most 64 KiB. Its channels do not share a session with others.
/// - QUIC shows only packets to a relay between client and server. It does not report a broken
///   connection: the waiting end has to send echoes.
/// - Over SMB Direct the data of a request without signature and encryption bypass a relay.
/// - Long tests over TCP are shorter over the other transports.
pub const TRANSPORTS: [&str; 4] = ["tcp", "nbt", "quic", "smbdirect"];

const START_LIMIT: Duration = Duration::from_secs(60);
const STOP_LIMIT: Duration = Duration::from_secs(30);
/// Number of the last lines of a server's log that a panicking test shows.
const LOG_LINES_SHOWN: usize = 40;

/// A user of the server.
#[derive(Clone, Copy, Debug)]
pub struct User {
    /// The name, of the session and in the Unix of the lab.
    pub name: &'static str,
    /// The password.
    pub password: &'static str,
    /// The Unix uid and gid inside the lab.
    pub id: u32,
}

/// Which server is under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The server of this workspace.
    Smbeam,
    /// The lab's smbd, to validate the tests themselves.
    Samba,
}

/// The settings of a share.
#[derive(Clone, Debug)]
pub struct Share {
    /// The name that clients connect to.
    pub name: String,
    /// The directory behind it.
    pub path: PathBuf,
    /// Whether the share is read-only.
    pub read_only: bool,
    /// Whether the server refuses requests without encryption.
    pub encryption_required: bool,
    /// The users that may connect; empty: every user.
    pub users: Vec<String>,
    /// Whether guests may connect too.
    pub guests: bool,
    /// Whether clients may cache what they open.
    pub oplocks: bool,
    /// Whether clients may watch its directories.
    pub notify: bool,
    /// Whether smbeam moves large transfers past the page cache; smbd never does.
    pub direct: bool,
    /// Whether smbeam keeps named streams that do not fit into an extended attribute; smbd never
    /// does.
    pub large_streams: bool,
    /// When written data reach the disk: `client`, `flush` or `always`.
    pub sync: &'static str,
    /// More keys for smbeam's `[[share]]`.
    pub keys: toml::Table,
}

/// The settings of a server.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Its shares.
    pub shares: Vec<Share>,
    /// More users than [`USERS`]. The lab needs accounts with their names.
    pub users: Vec<User>,
    /// Whether the server refuses requests without a signature.
    pub signing_required: bool,
    /// Whether the server refuses requests without encryption.
    pub encryption_required: bool,
    /// Whether the server advertises several connections to its one interface.
    pub channels: bool,
    /// `security.gmac_channels` of smbeam, as `allow`; none: the default.
    pub gmac_channels: Option<&'static str>,
    /// The highest dialect that is spoken, as `3.0.2`; none: every one.
    pub max_dialect: Option<&'static str>,
    /// More limits of smbeam, as `name = value`; smbd has none of them.
    pub limits: Vec<(String, u64)>,
    /// The program of smbeam; none: the one that `SMBEAM_BIN` names or the workspace builds.
    pub binary: Option<PathBuf>,
    /// The I/O driver of smbeam: auto, uring or epoll.
    pub io: Option<String>,
    /// More keys for smbeam's `[server]`.
    pub server: toml::Table,
    /// The keys of smbeam's `[metrics]`; empty: no metrics.
    pub metrics: toml::Table,
    /// More keys for smbeam's `[security]`.
    pub security: toml::Table,
    /// More keys for smbeam's `[quic]`.
    pub quic: toml::Table,
    /// More lines for smbd's `[global]`; for comparisons.
    pub samba_globals: Vec<String>,
}

/// A server that runs.
#[derive(Debug)]
pub struct Server {
    /// Which one it is.
    pub subject: Subject,
    /// Where it speaks SMB over TCP.
    pub tcp: SocketAddrV4,
    /// Where it speaks SMB over the NBT session service.
    pub nbt: SocketAddrV4,
    /// Where it speaks each of [`TRANSPORTS`].
    addresses: [SocketAddrV4; TRANSPORTS.len()],
    child: Child,
    scratch: Scratch,
    plan: Plan,
    holder: Option<u32>,
    lab: Option<Lab>,
    _ports: Vec<ReservedPort>,
}

/// The `smbeam` program under test.
pub fn program() -> Result<PathBuf> {
    binary::path()
}

impl Subject {
    /// The subject that `SMBEAM_SUBJECT` names; smbeam unless it says samba.
    pub fn chosen() -> Subject {
        match env::var("SMBEAM_SUBJECT").as_deref() {
            Ok("samba") => Subject::Samba,
            _ => Subject::Smbeam,
        }
    }

    /// Those of [`TRANSPORTS`] that it listens by. smbd's QUIC needs a module of the kernel's.
    pub fn transports(self) -> &'static [&'static str] {
        match self {
            Subject::Smbeam => &TRANSPORTS,
            Subject::Samba => &TRANSPORTS[..2],
        }
    }
}

impl Share {
    /// A share of `path` that every user may write to.
    pub fn new(name: &str, path: &Path) -> Share {
        Share {
            name: name.into(),
            path: path.into(),
            read_only: false,
            encryption_required: false,
            users: Vec::new(),
            guests: false,
            oplocks: true,
            notify: true,
            direct: false,
            large_streams: false,
            sync: "flush",
            keys: toml::Table::new(),
        }
    }
}

impl Plan {
    /// One share of `path`, called `data`.
    pub fn sharing(path: &Path) -> Plan {
        Plan {
            shares: vec![Share::new("data", path)],
            ..Plan::default()
        }
    }
}

impl Server {
    /// Starts the chosen subject in the lab on loopback and waits until it listens.
    pub fn start(lab: &Lab, plan: Plan) -> Result<Server> {
        Server::start_as(Subject::chosen(), Some(lab), None, plan)
    }

    /// Starts the chosen subject in `namespace`, where a guest reaches it.
    pub fn start_under(lab: &Lab, namespace: &Namespace, plan: Plan) -> Result<Server> {
        Server::start_as(Subject::chosen(), Some(lab), Some(namespace.holder()), plan)
    }

    /// Starts the chosen subject without a lab, which smbd cannot do without.
    pub fn start_alone(plan: Plan) -> Result<Server> {
        match Lab::find() {
            Ok(lab) => Server::start(&lab, plan),
            Err(missing) if Subject::chosen() == Subject::Samba => Err(missing.into()),
            Err(_) => Server::start_as(Subject::Smbeam, None, None, plan),
        }
    }

    /// Starts `subject` in the network namespace of the process `holder`.
    pub fn start_as(
        subject: Subject,
        lab: Option<&Lab>,
        holder: Option<u32>,
        plan: Plan,
    ) -> Result<Server> {
        let scratch = Scratch::new("server")?;
        let reserved = match holder {
            // The server is alone in a network namespace: the well-known ports are free.
            Some(_) => Vec::new(),
            None => reserve_ports()?,
        };
        let mut ports = well_known_ports();
        for (port, reserved) in ports.iter_mut().zip(&reserved) {
            *port = reserved.number;
        }
        let address = match holder {
            Some(_) => HOST_ADDRESS.parse().context("an address of our own")?,
            None => Ipv4Addr::LOCALHOST,
        };
        let addresses = ports.map(|port| SocketAddrV4::new(address, port));
        let [tcp, nbt, ..] = addresses;
        let site = Site {
            directory: scratch.path(),
            addresses,
            plan: &plan,
            lab,
        };
        match subject {
            Subject::Smbeam => smbeam::prepare(&site)?,
            Subject::Samba => samba::prepare(&site)?,
        }
        let child = spawn(subject, &site, holder)?;
        let lab = lab.cloned();
        let mut server = Server {
            subject,
            tcp,
            nbt,
            addresses,
            child,
            scratch,
            plan,
            holder,
            lab,
            _ports: reserved,
        };
        server.wait_until_it_listens()?;
        Ok(server)
    }

    /// Where it speaks one of [`TRANSPORTS`].
    ///
    /// # Panics
    /// It is none of them.
    pub fn address(&self, transport: &str) -> SocketAddrV4 {
        let place = TRANSPORTS.iter().position(|name| *name == transport);
        self.addresses[place.expect("the servers of tests speak it")]
    }

    /// The server's main process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The process of the network namespace that it runs in; none: that of the host.
    pub fn holder(&self) -> Option<u32> {
        self.holder
    }

    /// Where its configuration and its state are.
    pub fn directory(&self) -> &Path {
        self.scratch.path()
    }

    /// Its control socket, where it is smbeam.
    pub fn control(&self) -> PathBuf {
        smbeam::control(self.directory())
    }

    /// The file that smbeam was started with.
    pub fn configuration(&self) -> PathBuf {
        self.directory().join("smbeam.toml")
    }

    /// The certificate that smbeam makes where its plan has none.
    pub fn certificate(&self) -> PathBuf {
        self.directory().join("quic-self-signed.pem")
    }

    /// Everything that the server has logged.
    pub fn log(&self) -> String {
        let mut text = String::new();
        for file in fs::read_dir(self.scratch.path())
            .into_iter()
            .flatten()
            .flatten()
        {
            if file.file_name().to_string_lossy().starts_with("log") {
                text.push_str(&fs::read_to_string(file.path()).unwrap_or_default());
            }
        }
        text
    }

    /// Kills the server and all its processes with SIGKILL, as a crash would. Returns when its
    /// ports are free: the kernel may close the sockets of an `io_uring` instance later.
    pub fn kill(&mut self) -> Result<()> {
        self.signal("KILL", START_LIMIT)?;
        let (tcp, addresses, holder) = (self.tcp, self.addresses, self.holder);
        wait::until("the ports to be free", START_LIMIT, || match holder {
            None => !listening(&addresses).any(|listens| listens),
            Some(_) => !listens(tcp, holder),
        })
    }

    /// Starts the server again as it was, after it was killed.
    pub fn restart(&mut self) -> Result<()> {
        let site = Site {
            directory: self.scratch.path(),
            addresses: self.addresses,
            plan: &self.plan,
            lab: self.lab.as_ref(),
        };
        self.child = spawn(self.subject, &site, self.holder)?;
        self.wait_until_it_listens()
    }

    /// Asks the server to finish and waits for it.
    pub fn stop(&mut self) -> Result<()> {
        self.signal("TERM", STOP_LIMIT)
    }

    fn signal(&mut self, signal: &str, limit: Duration) -> Result<()> {
        if self.child.try_wait()?.is_some() {
            return Ok(());
        }
        // The server was started as the leader of a process group, to which its children belong.
        let group = format!("-{}", self.child.id());
        let sent = Command::new("kill")
            .args(["-s", signal, "--", &group])
            .status()?;
        if !sent.success() || wait::for_end(&mut self.child, limit)?.is_none() {
            bail!("the server did not end on SIG{signal} within {limit:?}");
        }
        Ok(())
    }

    fn wait_until_it_listens(&mut self) -> Result<()> {
        let (tcp, addresses, holder) = (self.tcp, self.addresses, self.holder);
        let is_ours = self.subject == Subject::Smbeam && holder.is_none();
        let child = &mut self.child;
        let mut ended = false;
        let listening = wait::until("the server to listen", START_LIMIT, || {
            ended = child.try_wait().ok().flatten().is_some();
            // No probe by a connection, which our server would count.
            ended
                || match is_ours {
                    true => listening(&addresses).all(|listens| listens),
                    false => listens(tcp, holder),
                }
        });
        if ended || listening.is_err() {
            bail!("the server does not start:\n{}", self.log());
        }
        self.wait_until_it_reports()
    }

    /// Waits until the HTTP server for metrics reports the running server, where the plan has one.
    /// It refuses other requests before, and the server listens before.
    fn wait_until_it_reports(&self) -> Result<()> {
        let Some(address) = self.plan.metrics.get("listen").and_then(Value::as_str) else {
            return Ok(());
        };
        let address: SocketAddr = address.parse().context("metrics.listen")?;
        wait::until("metrics of the running server", START_LIMIT, || {
            http::get(address, "/readyz", "")
                .is_ok_and(|answer| answer.body.contains("\"state\":\"running\""))
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.stop().is_err() {
            let _ = self.kill();
        }
        if thread::panicking() {
            let log = self.log();
            let lines: Vec<&str> = log.lines().collect();
            let shown = &lines[lines.len().saturating_sub(LOG_LINES_SHOWN)..];
            eprintln!("the end of the server's log:\n    {}", shown.join("\n    "));
        }
    }
}

/// The directory, the addresses and the plan of a server.
struct Site<'a> {
    directory: &'a Path,
    addresses: [SocketAddrV4; TRANSPORTS.len()],
    plan: &'a Plan,
    lab: Option<&'a Lab>,
}

impl Site<'_> {
    fn users(&self) -> impl Iterator<Item = &User> {
        USERS.iter().chain(&self.plan.users)
    }

    fn tcp(&self) -> SocketAddrV4 {
        self.addresses[0]
    }

    fn nbt(&self) -> SocketAddrV4 {
        self.addresses[1]
    }
}

fn spawn(subject: Subject, site: &Site<'_>, holder: Option<u32>) -> Result<Child> {
    use std::os::unix::process::CommandExt as _;
    let mut command = match subject {
        Subject::Smbeam => smbeam::command(site, holder)?,
        Subject::Samba => samba::command(site, holder)?,
    };
    let log = File::options()
        .create(true)
        .append(true)
        .open(site.directory.join("log"))?;
    command
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log);
    command
        .process_group(0)
        .spawn()
        .context("cannot start the server")
}

/// A port for each transport.
fn reserve_ports() -> Result<Vec<ReservedPort>> {
    TRANSPORTS.iter().map(|_| ReservedPort::new()).collect()
}

/// The addresses of a server that is alone in a network namespace.
fn well_known_addresses(ip: Ipv4Addr) -> [SocketAddrV4; TRANSPORTS.len()] {
    well_known_ports().map(|port| SocketAddrV4::new(ip, port))
}

fn well_known_ports() -> [u16; TRANSPORTS.len()] {
    TRANSPORTS.map(|name| match name {
        "tcp" => 445,
        "nbt" => 139,
        "quic" => 443,
        _ => 5445,
    })
}

/// Whether a server listens, for each transport.
fn listening(addresses: &[SocketAddrV4; TRANSPORTS.len()]) -> impl Iterator<Item = bool> {
    let table = |name: &str| fs::read_to_string(format!("/proc/net/{name}")).unwrap_or_default();
    let (tcp, udp, unix) = (table("tcp"), table("udp"), table("unix"));
    TRANSPORTS
        .iter()
        .zip(addresses)
        .map(move |(name, address)| {
            let port = address.port();
            let unconnected = format!(":{port:04X} 00000000:0000 ");
            match *name {
                "quic" => udp.contains(&unconnected),
                "smbdirect" => unix
                    .lines()
                    .any(|line| line.ends_with(&format!("/{port}.sock"))),
                _ => tcp.contains(&unconnected),
            }
        })
}

fn listens(address: SocketAddrV4, holder: Option<u32>) -> bool {
    match holder {
        None => TcpStream::connect(address).is_ok(),
        // Another namespace: read its table of sockets. State 0A is LISTEN.
        Some(pid) => {
            let table = fs::read_to_string(format!("/proc/{pid}/net/tcp")).unwrap_or_default();
            let port = format!(":{:04X} ", address.port());
            table
                .lines()
                .any(|line| line.contains(&port) && line.contains(" 0A "))
        }
    }
}
