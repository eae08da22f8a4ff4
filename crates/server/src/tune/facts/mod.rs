//! The facts that the rules use: of the machine, its disks and networks, and the configuration.

mod config;
mod kernel;
mod network;
mod raid;
mod storage;
mod xfs;

use serde::{Deserialize, Serialize};

pub use self::config::ConfigFacts;
pub use self::kernel::KernelFacts;
pub use self::network::{InterfaceFacts, InterruptFacts};
pub use self::raid::RaidFacts;
pub use self::storage::{BlockFacts, FlushTimes, MountFacts, StoreFacts};
pub use self::xfs::XfsFacts;
use crate::config::Config;
use crate::status::{SessionStatus, Status};
use crate::tune::CryptoSpeed;

/// Facts about a server. They serialize to JSON, so that a user can send them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// The kernel and the machine.
    pub kernel: KernelFacts,
    /// The directories of the shares.
    pub stores: Vec<StoreFacts>,
    /// The network interfaces with a device.
    pub interfaces: Vec<InterfaceFacts>,
    /// The configuration; `None` for a client.
    pub config: Option<ConfigFacts>,
    /// The connections of the running server.
    pub clients: Vec<ClientFacts>,
    /// Speed of signing and encryption on one core; empty if it was not measured.
    pub crypto: Vec<CryptoSpeed>,
    /// Mounts of cifs.ko on this machine.
    pub mounts: Vec<MountFacts>,
}

/// Connections of a running server with equal protection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientFacts {
    /// Number of the connections.
    pub count: usize,
    /// Dialect, such as `3.1.1`.
    pub dialect: String,
    /// The algorithm that protects their messages, such as `AES-128-CCM`; `None` without
    /// protection.
    pub algorithm: Option<String>,
}

/// Reads all facts of a server: the machine, the shares of `config`, and the connections in
/// `status`. Runs `xfs_info` and `ethtool` if they exist. With `measures_flush`, it writes to
/// an unnamed file in the directory of each share and flushes it. Blocks.
pub fn gather(config: Option<&Config>, status: Option<&Status>, measures_flush: bool) -> Facts {
    let shares = config.map_or(&[][..], |config| &config.shares);
    Facts {
        kernel: kernel::gather(status.map(|status| status.server.pid)),
        stores: storage::gather(shares, measures_flush),
        interfaces: network::gather(),
        config: config.map(config::gather),
        clients: status.map_or_else(Vec::new, clients),
        crypto: Vec::new(),
        mounts: storage::cifs_mounts(),
    }
}

/// The algorithm that protects the messages of a session; `None` without protection.
pub(in crate::tune) fn algorithm(session: &SessionStatus) -> Option<&str> {
    match (session.is_encrypted, session.is_signed) {
        (true, _) => session.cipher.as_deref(),
        (false, true) => Some(&session.signing),
        (false, false) => None,
    }
}

/// The connections by dialect and protection.
fn clients(status: &Status) -> Vec<ClientFacts> {
    let mut found: Vec<ClientFacts> = Vec::new();
    for session in &status.sessions {
        let algorithm = algorithm(session).map(str::to_owned);
        let count = session.channels.len();
        let is_known = |known: &&mut ClientFacts| {
            known.dialect == session.dialect && known.algorithm == algorithm
        };
        match found.iter_mut().find(is_known) {
            Some(known) => known.count += count,
            None => found.push(ClientFacts {
                count,
                dialect: session.dialect.clone(),
                algorithm,
            }),
        }
    }
    found
}

impl Facts {
    /// Bits per second of the fastest interface; `None` if no interface reports its speed.
    pub(crate) fn fastest_bits(&self) -> Option<u64> {
        let speeds = self.interfaces.iter().filter_map(|it| it.speed_mbit);
        speeds.max().map(|mbit| mbit * 1_000_000)
    }
}
