//! Both ends of smbeam: `smbeam serve` and `smbeam bench read`.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, thread};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use smbeam_tests::subject::{ALICE, program};
use toml::Table;

use super::cpu_samples::CpuSamples;
use super::environment::Topology;
use super::{Figures, MESSAGE_BYTES, command_in};
use crate::options::Options;

/// Requests in flight, except over QUIC: the default of the client.
const DEPTH: u32 = 16;
/// Length of the file on loopback, in bytes. The bench writes and reads it before the measurement.
const FILE_BYTES: u64 = 256 << 20;
/// Length of the file on the lossy link, in bytes.
const FILE_BYTES_LINK: u64 = 4 << 20;
/// Name of the generated certificate of the server.
const CERTIFICATE: &str = "quic-self-signed.pem";
const START_LIMIT: Duration = Duration::from_secs(20);

/// The settings of a session.
#[derive(Clone, Copy, Debug)]
pub(super) struct Session {
    /// The transport.
    pub(super) transport: &'static str,
    /// Number of connections.
    pub(super) channels: usize,
    /// The layer that encrypts the messages.
    pub(super) encryption: Encryption,
    /// The share with the file.
    pub(super) share: Share,
}

/// The storage of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Share {
    /// A tmpfs.
    Tmpfs,
    /// A disk, through the page cache.
    Disk,
    /// A disk, without the page cache.
    Direct,
}

impl Share {
    const ALL: [Share; 3] = [Share::Tmpfs, Share::Disk, Share::Direct];

    fn name(self) -> &'static str {
        match self {
            Share::Tmpfs => "tmpfs",
            Share::Disk => "disk",
            Share::Direct => "direct",
        }
    }

    fn table(self, topology: &Topology<'_>) -> Table {
        let path = match self {
            Share::Tmpfs => &topology.tmpfs,
            Share::Disk | Share::Direct => &topology.disk,
        };
        let mut share = Table::new();
        share.insert("name".into(), self.name().into());
        share.insert("path".into(), path.display().to_string().into());
        // Other shares omit the key, so that older binaries accept the configuration.
        if self == Share::Direct {
            share.insert("direct".into(), true.into());
        }
        share
    }
}

/// The layer that encrypts the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encryption {
    /// None: the messages are not encrypted.
    None,
    /// TLS only. Both ends accept it in place of the SMB encryption that the server requires.
    Tls,
    /// The SMB session, inside TLS if the transport has TLS.
    Session,
}

/// A running server. Dropping the value kills it.
struct Server {
    child: Child,
}

/// Starts a server, measures it, and stops it.
pub(super) fn run(topology: &Topology<'_>, session: Session, options: &Options) -> Result<Figures> {
    let program = program()?;
    let server = Server::start(&program, topology, session, options)?;
    let is_link = topology.is_link;
    let seconds = match is_link {
        true => options.link_seconds(),
        false => options.seconds,
    };
    let bytes = warm_up_bytes(is_link);
    let window_mb = options.window_mb(is_link);
    // Enough requests to fill the QUIC window. Over the link all transports use the same number.
    let depth = match session.transport == "quic" || is_link {
        true => window_mb,
        false => DEPTH,
    };
    let [tcp, other] = topology.ports;
    let port = match session.transport {
        "tcp" => tcp,
        _ => other,
    };
    let share = session.share.name();
    let url = format!("smb://{}@{}:{port}/{share}", ALICE.name, topology.address);
    let mut command = command_in(topology.client, &program);
    command
        .args(["bench", "read", &url, "--json", "--time"])
        .arg(seconds.to_string())
        .args(["--size", &bytes.to_string(), "--depth", &depth.to_string()])
        .args(["--io-size", &MESSAGE_BYTES.to_string()])
        .env("SMBEAM_PASSWORD", ALICE.password)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let carrier = format!("{}:{port}", session.transport);
    if session.channels > 1 {
        let channels = vec![carrier.as_str(); session.channels].join(",");
        command.args(["--channels", &channels]);
    } else {
        command.args(["--transports", &carrier, "--channels", "1"]);
    }
    match session.transport {
        "quic" => {
            let certificate = state(topology).join(CERTIFICATE);
            command
                .arg("--ca-file")
                .arg(certificate)
                .arg("--allow-address")
                .arg("--quic")
                .arg(format!("receive-window={}", window_mb << 10));
        }
        "smbdirect" => {
            command.args(["--rdma", &format!("emulated:{}", rdma_directory(topology)?)]);
        }
        _ => {}
    }
    match session.encryption {
        Encryption::None => {}
        Encryption::Tls => drop(command.arg("--transport-security")),
        Encryption::Session => drop(command.arg("--encrypt")),
    }
    let mut client = command.spawn().context("cannot run smbeam bench")?;
    let samples = CpuSamples::during(&mut client, server.child.id(), f64::from(seconds));
    let output = client.wait_with_output()?;
    let samples = samples?;
    ensure!(
        output.status.success(),
        "smbeam bench: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    let line: Value = serde_json::from_slice(&output.stdout).context("smbeam bench's JSON")?;
    Figures::from_json(&line, &samples)
}

/// Bytes to read before the measurement.
pub(super) fn warm_up_bytes(is_link: bool) -> u64 {
    match is_link {
        true => FILE_BYTES_LINK,
        false => FILE_BYTES,
    }
}

/// The directory for emulated SMB Direct.
fn rdma_directory(topology: &Topology<'_>) -> Result<String> {
    let path = topology.directory.join("rdma");
    fs::create_dir_all(&path)?;
    Ok(path.display().to_string())
}

impl Server {
    fn start(
        program: &Path,
        topology: &Topology<'_>,
        session: Session,
        options: &Options,
    ) -> Result<Server> {
        let path = |name: &str| topology.directory.join(name);
        fs::write(
            path("smbeam.toml"),
            toml::to_string(&table(topology, session, options)?)?,
        )?;
        fs::create_dir_all(state(topology))?;
        add_user(program, &path("users.toml"))?;
        let log = File::create(path("log"))?;
        let child = command_in(topology.server, program)
            .args(["serve", "--config"])
            .arg(path("smbeam.toml"))
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("cannot start the server")?;
        let mut server = Server { child };
        let log = || fs::read_to_string(path("log")).unwrap_or_default();
        let limit = Instant::now() + START_LIMIT;
        while !listens(program, &control(topology))? {
            if server.child.try_wait()?.is_some() || Instant::now() > limit {
                bail!("the server does not start:\n{}", log());
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The directory with the generated certificate of the server.
fn state(topology: &Topology<'_>) -> PathBuf {
    topology
        .directory
        .join(format!("state-{}", topology.address))
}

fn control(topology: &Topology<'_>) -> PathBuf {
    topology.directory.join("control")
}

fn table(topology: &Topology<'_>, session: Session, options: &Options) -> Result<Table> {
    let text = |path: PathBuf| path.display().to_string();
    let [tcp, other] = topology.ports;
    let mut transports = vec![format!("tcp:{tcp}")];
    if session.transport != "tcp" {
        transports.push(format!("{}:{other}", session.transport));
    }
    let mut server = Table::new();
    server.insert("listen".into(), vec![topology.address.to_string()].into());
    server.insert("transports".into(), transports.into());
    server.insert(
        "users".into(),
        text(topology.directory.join("users.toml")).into(),
    );
    server.insert("control_socket".into(), text(control(topology)).into());
    let mut quic = Table::new();
    quic.insert("state_directory".into(), text(state(topology)).into());
    quic.insert("names".into(), vec![topology.address.to_string()].into());
    quic.insert("transport_security".into(), "accept".into());
    quic.insert("congestion".into(), options.congestion.name().into());
    quic.insert(
        "send_window_kb".into(),
        (options.window_mb(topology.is_link) << 10).into(),
    );
    let mut security = Table::new();
    let is_encrypted = session.encryption != Encryption::None;
    security.insert("encryption_required".into(), is_encrypted.into());
    // The bare mechanisms sign nothing.
    security.insert("signing_required".into(), false.into());
    let shares = Share::ALL.map(|share| share.table(topology));
    let mut table = Table::new();
    table.insert("server".into(), server.into());
    table.insert("security".into(), security.into());
    table.insert("quic".into(), quic.into());
    table.insert("share".into(), shares.to_vec().into());
    if session.transport == "smbdirect" {
        let mut rdma = Table::new();
        rdma.insert("provider".into(), "emulated".into());
        rdma.insert("directory".into(), rdma_directory(topology)?.into());
        table.insert("rdma".into(), rdma.into());
    }
    Ok(table)
}

/// Adds the user with the permissions of the unprivileged Unix account.
fn add_user(program: &Path, users: &Path) -> Result<()> {
    if users.exists() {
        return Ok(());
    }
    let mut child = Command::new(program)
        .args(["user", "add", "--password-stdin", "--unix", "nobody"])
        .arg("--file")
        .arg(users)
        .arg(ALICE.name)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .context("cannot run smbeam user add")?;
    let mut input = child.stdin.take().context("the input was piped")?;
    writeln!(input, "{}", ALICE.password)?;
    drop(input);
    ensure!(child.wait()?.success(), "smbeam user add fails");
    Ok(())
}

/// Whether the server answers on its control socket, which it opens when it listens.
fn listens(program: &Path, control: &Path) -> Result<bool> {
    let mut command = Command::new(program);
    command.args(["status", "--socket"]).arg(control);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    // The configuration of the user must have no effect.
    command.env("HOME", env::temp_dir());
    Ok(control.exists() && command.status()?.success())
}
