//! A server in this process, and a client of it.
#![allow(dead_code, reason = "each test takes what it needs")]

pub(crate) mod meddler;

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use auth::{Account, Users};
use smbeam_client::{Client, Credentials, Error, Options, Session, Share, Wait};
use smbeam_server::config::{Config, IoChoice, SecuritySection, ServerSection, ShareSection};
use smbeam_server::{Accounts, Server};
use tempfile::TempDir;

pub(crate) const USER: &str = "alice";
pub(crate) const PASSWORD: &str = "open sesame";
pub(crate) const SHARE: &str = "data";

/// A server that shares an empty folder.
pub(crate) struct Rig {
    folder: TempDir,
    server: Option<Server>,
    address: SocketAddr,
}

impl Rig {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut Config)) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut config = Config {
            server: ServerSection {
                listen: Some(vec![IpAddr::from([127, 0, 0, 1]).into()]),
                transports: vec![smbeam_server::config::unplaced("tcp:0".to_owned())],
                io: IoChoice::Auto,
                ..ServerSection::default()
            },
            security: SecuritySection {
                failed_login_delay_ms: 0,
                // Signed data do not move by RDMA, and some tests change messages.
                signing_required: false,
                ..SecuritySection::default()
            },
            shares: vec![ShareSection::new(SHARE, folder.path(), false)],
            ..Config::default()
        };
        change(&mut config);
        let config = config.checked(Path::new("test")).expect("a configuration");
        let mut users = Users::default();
        let mut account = Account::new(USER, PASSWORD).expect("an account");
        if smbeam_server::may_assume_identities() {
            account.unix = Some("root".to_owned());
        }
        users.insert(account);
        let accounts = match config.server.users {
            Some(_) => Accounts::from_config(&config).expect("a user file"),
            None => Accounts::fixed(&config, users),
        };
        let server = Server::start(&config, accounts).expect("a server");
        let address = server.listening()[0].address;
        Self {
            folder,
            server: Some(server),
            address,
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn stop(&mut self) {
        if let Some(server) = self.server.take() {
            server.stop();
        }
    }

    /// Makes the server read its user file again.
    pub(crate) fn reload(&self) {
        self.server
            .as_ref()
            .expect("it runs")
            .reloader()
            .reload_files();
    }

    pub(crate) fn connect(&self, options: Options) -> Result<Session, Error> {
        connect(self.port(), options)
    }

    pub(crate) fn session(&self) -> Session {
        self.connect(options()).expect("a session")
    }

    pub(crate) fn share(&self) -> Share {
        self.session().share(SHARE).wait().expect("a share")
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.stop();
    }
}

pub(crate) fn credentials() -> Credentials {
    Credentials::new(None, USER, PASSWORD)
}

pub(crate) fn connect(port: u16, options: Options) -> Result<Session, Error> {
    let client = Client::new(options)?;
    client
        .connect("127.0.0.1", Some(port), &credentials())
        .wait()
}

/// Those of most tests: a test that hangs fails.
pub(crate) fn options() -> Options {
    Options::default()
        .threads(2)
        .request_timeout(Some(Duration::from_secs(60)))
}

/// Bytes that tell where they are from.
pub(crate) fn pattern(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}
