//! The directory for what the server keeps over a restart.

use std::path::PathBuf;

use super::Config;

/// State directory of servers that run as root.
const SYSTEM_STATE: &str = "/var/lib/smbeam";

impl Config {
    /// Returns the directory for what the server keeps over a restart: the configured one, else
    /// $STATE_DIRECTORY of systemd, else that of the system for root, else that of the user.
    pub fn state_directory(&self) -> PathBuf {
        let configured = self.server.state_directory.clone();
        configured.unwrap_or_else(default_directory)
    }
}

fn default_directory() -> PathBuf {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let of_systemd = variable("STATE_DIRECTORY");
    if let Some(directory) = of_systemd.filter(|directory| directory.is_absolute()) {
        return directory;
    }
    if rustix::process::geteuid().is_root() {
        return SYSTEM_STATE.into();
    }
    let own = variable("XDG_STATE_HOME").filter(|directory| directory.is_absolute());
    let own = own.or_else(|| variable("HOME").map(|home| home.join(".local/state")));
    own.map_or_else(|| SYSTEM_STATE.into(), |directory| directory.join("smbeam"))
}
