//! The section `[server]`: name, addresses and threads of the server.

use net::{Endpoint, Endpoints};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use toml::Spanned;

use super::{Check, ConfigError, ListenAddress, unplaced};
use crate::interfaces::Entry;

/// Most worker threads: more than any machine has cores today.
const MAX_WORKERS: usize = 1024;

/// Most blocking threads of one worker: more do not make a disk faster.
const MAX_BLOCKING_THREADS: usize = 1024;

/// The section `[server]` of the configuration: name, addresses and threads of the server.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
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
    #[schemars(with = "Vec<String>")]
    pub transports: Vec<Spanned<String>>,
    /// Path of the user file, with the names and password hashes of accounts. `None` (the default):
    /// the server has no accounts.
    pub users: Option<PathBuf>,
    /// Path of the mapping file: SIDs of other servers or of a domain, and the Unix accounts that
    /// they stand for. `None` (the default): no further SIDs.
    pub sid_map: Option<PathBuf>,
    /// Directory for what the server keeps over a restart, such as its SID. `None` (the default)
    /// stands for the directory of the system, or for that of the user.
    pub state_directory: Option<PathBuf>,
    /// Path of the control socket, through which other processes read the status of the server and
    /// reload its configuration; an empty path disables it. `None` (the default) stands for
    /// `PID.sock` in `/run/smbeam` (root) or in `$XDG_RUNTIME_DIR/smbeam`.
    pub control_socket: Option<PathBuf>,
    /// Name of a Unix group. Its members may read the status through the control socket, and cannot
    /// change the server. `None` (the default): only root and the user of the server.
    pub control_group: Option<String>,
    /// Number of threads that serve connections, at most 1024. 0 (the default) stands for one for
    /// each processor core.
    #[schemars(with = "usize")]
    pub workers: Spanned<usize>,
    /// I/O interface of the kernel that the workers use. Default: io_uring if it is available.
    pub io: IoChoice,
    /// Maximum memory in MiB that each worker thread uses for I/O buffers. Default: 256.
    pub buffer_memory_mb: usize,
    /// Maximum number of threads that each worker uses for file operations that may block, from 1
    /// to 1024. Default: 4.
    #[schemars(with = "usize")]
    pub blocking_threads: Spanned<usize>,
    /// Whether a session may use several connections (multichannel). Default: yes.
    pub multichannel: bool,
    /// Network interfaces that the server reports to clients for multichannel, each in the form
    /// `NAME-OR-ADDRESS[;speed=BITS][;rss]`. Empty (the default): all interfaces that the server
    /// listens on.
    #[schemars(with = "Vec<String>")]
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
            sid_map: None,
            state_directory: None,
            control_socket: None,
            control_group: None,
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
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

impl Check<'_> {
    pub(super) fn server(&self, server: &ServerSection) -> Result<(), ConfigError> {
        let mut list = Vec::new();
        for transport in &server.transports {
            let endpoints = Endpoint::expand(transport.get_ref())
                .map_err(|error| self.error(transport, format!("server.transports: {error}")))?;
            list.extend(endpoints);
        }
        if let Err(error) = Endpoints::new(list) {
            let what = format!("server.transports: {error}");
            return Err(match server.transports.last() {
                Some(last) => self.error(last, what),
                None => self.error_of_key("server.transports", what),
            });
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
}
