//! A quick share: one directory, a generated user and password, no configuration file.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::Context;
use auth::{Account, Users};
use net::{Endpoint, Endpoints, Transport};
use smbeam_server::Accounts;
use smbeam_server::config::{Config, IoChoice, ServerSection, ShareSection};

use super::arguments::{Arguments, log_section, named};

/// The port of a quick share if the user is not root.
const UNPRIVILEGED_PORT: u16 = 4455;
/// Length of a generated password: 20 of 32 characters are 100 bits.
const PASSWORD_CHARS: usize = 20;
/// The characters of a generated password, without similar ones such as 0 and o.
const ALPHABET: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
/// The user name of a quick share.
pub(super) const USER: &str = "smbeam";

/// A quick share that is ready to start.
pub(super) struct QuickShare {
    pub(super) config: Config,
    /// Name of the share.
    pub(super) name: String,
    pub(super) password: String,
}

impl QuickShare {
    /// Prepares a share of a directory, and the account that may use it.
    pub(super) fn new(arguments: &Arguments, path: &Path) -> anyhow::Result<(Self, Accounts)> {
        let shown = || path.display().to_string();
        let path = path.canonicalize().with_context(shown)?;
        let name = share_name(arguments, &path)?;
        let config = config(arguments, &path, &name)?;
        let password = generated_password();
        let mut users = Users::default();
        let mut account = Account::new(USER, &password)?;
        if is_root() {
            account.unix = Some(owner(&path)?);
        }
        users.insert(account);
        let accounts = Accounts::fixed(&config, users);
        let share = Self {
            config,
            name,
            password,
        };
        Ok((share, accounts))
    }

    /// The shared directory.
    pub(super) fn path(&self) -> &Path {
        self.config.shares[0].path.get_ref()
    }
}

fn share_name(arguments: &Arguments, path: &Path) -> anyhow::Result<String> {
    if let Some(name) = &arguments.name {
        return Ok(name.clone());
    }
    let name = path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    name.context("the directory has no name that a share can take: give one with --name")
}

fn config(arguments: &Arguments, path: &Path, name: &str) -> anyhow::Result<Config> {
    let default_port = if is_root() { 445 } else { UNPRIVILEGED_PORT };
    let port = arguments.port.unwrap_or(default_port);
    let tcp = Endpoint {
        transport: Transport::Tcp,
        port,
    };
    let transports = arguments.transports.clone();
    let transports = transports.unwrap_or_else(|| Endpoints::from(tcp));
    let listen = &arguments.listen;
    let mut config = Config {
        server: ServerSection {
            listen: (!listen.is_empty()).then(|| listen.clone()),
            transports: named(&transports),
            io: arguments.io.unwrap_or(IoChoice::Auto),
            ..ServerSection::default()
        },
        shares: vec![ShareSection::new(name, path, arguments.read_only)],
        log: log_section(arguments, Default::default()),
        ..Config::default()
    };
    if let Some(choice) = &arguments.rdma {
        config.set_rdma(choice.clone());
    }
    config
        .checked(Path::new("command line"))
        .map_err(Into::into)
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
