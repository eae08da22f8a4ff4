//! `smbeam serve`: runs a server.

use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use auth::{Account, Users};
use clap::Args;
use net::{Endpoint, Endpoints, Transport};
use smbeam_client::RdmaChoice;
use smbeam_server::config::{Config, ServerSection, ShareSection};
use smbeam_server::control::{self, ControlSocket};
use smbeam_server::{Accounts, Listening, Server, Shown};
use tracing::info;

use crate::output::note;
use crate::stop::Stop;

/// The port of a quick share if the user is not root.
const UNPRIVILEGED_PORT: u16 = 4455;
/// Length of a generated password: 20 of 32 characters are 100 bits.
const PASSWORD_CHARS: usize = 20;
/// The characters of a generated password, without similar ones such as 0 and o.
const ALPHABET: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";

/// Arguments of `smbeam serve`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Share this directory without a configuration, with a generated user and password (a quick
    /// share).
    #[arg(required_unless_present = "config", conflicts_with = "config")]
    path: Option<PathBuf>,
    /// Read this configuration file.
    #[arg(long)]
    config: Option<PathBuf>,
    /// Name of the share. Default: the name of the directory.
    #[arg(long, requires = "path")]
    name: Option<String>,
    /// IP address to listen on. Default: all IPv4 addresses.
    #[arg(long, requires = "path")]
    listen: Option<IpAddr>,
    /// Port to listen on. Default: 445 for root, 4455 for other users.
    #[arg(long, requires = "path")]
    port: Option<u16>,
    /// Transports to listen on, separated by commas: `transport[:port]` with tcp, nbt, quic or
    /// smbdirect. Overrides the configuration file.
    #[arg(long, value_name = "LIST", conflicts_with = "port")]
    transports: Option<Endpoints>,
    /// RDMA provider for smbdirect: `verbs` for RDMA devices, or `emulated:DIRECTORY` for clients
    /// on this machine. Overrides the configuration file.
    #[arg(long, value_name = "PROVIDER", env = "SMBEAM_RDMA")]
    rdma: Option<RdmaChoice>,
    /// Make the share read-only.
    #[arg(long, requires = "path")]
    read_only: bool,
    /// I/O backend: auto, uring (io_uring) or epoll.
    #[arg(long, value_parser = parse_io)]
    io: Option<smbeam_server::config::IoChoice>,
}

fn parse_io(text: &str) -> Result<smbeam_server::config::IoChoice, String> {
    text.parse()
}

/// Runs `smbeam serve`.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    match (&arguments.config, &arguments.path) {
        (Some(file), _) => serve_config(arguments, file),
        (None, Some(path)) => serve_path(arguments, path),
        (None, None) => bail!("nothing to serve: give a directory or --config"),
    }
}

fn serve_config(arguments: &Arguments, file: &Path) -> anyhow::Result<()> {
    let mut config = Config::load(file)?;
    if let Some(io) = arguments.io {
        config.server.io = io;
    }
    if let Some(list) = &arguments.transports {
        config.server.transports = named(list);
    }
    if let Some(choice) = &arguments.rdma {
        config.set_rdma(choice.clone());
    }
    smbeam_server::log::start(&config.log).map_err(anyhow::Error::msg)?;
    let accounts = Accounts::from_config(&config).with_context(|| file.display().to_string())?;
    let file = file.canonicalize().ok();
    serve(&config, accounts, file, |_| {})
}

/// Shares one directory for a generated user.
fn serve_path(arguments: &Arguments, path: &Path) -> anyhow::Result<()> {
    let path = path
        .canonicalize()
        .with_context(|| path.display().to_string())?;
    let name = share_name(arguments, &path)?;
    let config = quick_config(arguments, &path, &name)?;
    smbeam_server::log::start(&config.log).map_err(anyhow::Error::msg)?;
    let password = generated_password();
    let mut users = Users::default();
    let mut account = Account::new(QUICK_USER, &password)?;
    if is_root() {
        account.unix = Some(owner(&path)?);
    }
    users.insert(account);
    let accounts = Accounts::fixed(&config, users);
    serve(&config, accounts, None, |listening| {
        // Most clients use TCP, so the instructions show it if it is available.
        let by_tcp = |listening: &&Listening| listening.transport == Transport::Tcp;
        let shown = listening.iter().find(by_tcp).or(listening.first());
        if let Some(listening) = shown {
            print_instructions(*listening, &name, &path, &password);
        }
    })
}

/// The user name of a quick share.
const QUICK_USER: &str = "smbeam";

fn share_name(arguments: &Arguments, path: &Path) -> anyhow::Result<String> {
    if let Some(name) = &arguments.name {
        return Ok(name.clone());
    }
    let name = path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    name.context("the directory has no name that a share can take: give one with --name")
}

fn quick_config(arguments: &Arguments, path: &Path, name: &str) -> anyhow::Result<Config> {
    let port = arguments
        .port
        .unwrap_or(if is_root() { 445 } else { UNPRIVILEGED_PORT });
    let only = || {
        Endpoint {
            transport: Transport::Tcp,
            port,
        }
        .into()
    };
    let transports = arguments.transports.clone().unwrap_or_else(only);
    let mut config = Config {
        server: ServerSection {
            listen: vec![arguments.listen.unwrap_or(IpAddr::from([0, 0, 0, 0]))],
            transports: named(&transports),
            io: arguments
                .io
                .unwrap_or(smbeam_server::config::IoChoice::Auto),
            ..ServerSection::default()
        },
        shares: vec![ShareSection::new(name, path, arguments.read_only)],
        ..Config::default()
    };
    if let Some(choice) = &arguments.rdma {
        config.set_rdma(choice.clone());
    }
    config
        .checked(Path::new("command line"))
        .map_err(Into::into)
}

/// A list of transports in the form of the configuration file.
fn named(list: &Endpoints) -> Vec<toml::Spanned<String>> {
    let text = |endpoint: &Endpoint| smbeam_server::config::unplaced(endpoint.to_string());
    list.iter().map(text).collect()
}

fn is_root() -> bool {
    smbeam_server::may_assume_identities()
}

/// The Unix account that owns the directory. It also owns the files that clients create.
fn owner(path: &Path) -> anyhow::Result<String> {
    let uid = std::fs::metadata(path)?.uid();
    smbeam_server::account_name(uid).with_context(|| {
        format!(
            "the owner of {} (user id {uid}) has no account on this machine",
            path.display()
        )
    })
}

fn generated_password() -> String {
    let mut bytes = [0; PASSWORD_CHARS];
    getrandom::fill(&mut bytes).expect("the kernel has random bytes");
    bytes
        .iter()
        .map(|byte| char::from(ALPHABET[usize::from(byte % 32)]))
        .collect()
}

/// Prints the commands for connecting to the share.
fn print_instructions(listening: Listening, name: &str, path: &Path, password: &str) {
    let host = smbeam_server::reachable(listening.address.ip());
    let port = listening.address.port();
    println!("Sharing {} as {name}", path.display());
    println!("  user      {QUICK_USER}");
    println!("  password  {password}   (generated for this run; it is not shown again)");
    println!("  URL       smb://{QUICK_USER}@{host}:{port}/{name}");
    match listening.transport {
        Transport::Tcp => {
            println!("  smbclient //{host}/{name} -p {port} -U {QUICK_USER}%{password}");
            println!(
                "  mount -t cifs //{host}/{name} /mnt \
                 -o port={port},username={QUICK_USER},password={password},vers=3.1.1"
            );
        }
        transport => println!("  transport --transports {transport}"),
    }
    println!("Stop with Ctrl-C.");
}

/// Runs the server until a signal stops it.
fn serve(
    config: &Config,
    accounts: Accounts,
    file: Option<PathBuf>,
    started: impl FnOnce(&[Listening]),
) -> anyhow::Result<()> {
    let stop = Stop::catch()?;
    let socket = control_socket(config)?;
    let server = Server::start(config, accounts)?;
    for Listening { address, transport } in server.listening() {
        note(&format_args!("listening on {address} ({transport})"));
    }
    if let Some(shown) = server.certificate() {
        let Shown {
            fingerprint,
            is_self_signed,
        } = shown;
        let suffix = if is_self_signed { ", self-signed" } else { "" };
        note(&format_args!("certificate SHA-256 {fingerprint}{suffix}"));
    }
    let serve_socket = |socket: ControlSocket| socket.serve(server.observer(), file);
    let control = socket.map(serve_socket).transpose()?;
    started(server.listening());
    let signal = stop.wait();
    info!(signal, "stopping");
    drop(control);
    server.stop();
    Ok(())
}

/// Opens the socket for `smbeam status`. Without a configured path, failure to open it is not an
/// error.
fn control_socket(config: &Config) -> anyhow::Result<Option<ControlSocket>> {
    match &config.server.control_socket {
        Some(path) if path.as_os_str().is_empty() => Ok(None),
        Some(path) => {
            let failed = || format!("server.control_socket: {}", path.display());
            ControlSocket::bind(path).map(Some).with_context(failed)
        }
        None => {
            let path = control::default_path();
            let made = path.and_then(|path| path.as_deref().map(ControlSocket::bind).transpose());
            Ok(made.unwrap_or_else(|error| {
                info!(%error, "no control socket: smbeam status will not find this server");
                None
            }))
        }
    }
}
