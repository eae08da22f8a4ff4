//! The place of a value of the configuration with which a server cannot start.

use super::Config;
use crate::error::StartError;

impl Config {
    /// The file and line, variable or option of the value that an error is about; the main file if
    /// no single value is. `None` for a configuration without a file.
    pub(crate) fn place_of_start_error(&self, error: &StartError) -> Option<String> {
        let key = match error {
            StartError::Share { name, .. } => self.key_of_share(name, "path"),
            StartError::Account { share, key, .. } => self.key_of_share(share, key),
            StartError::Listen { .. } => self.first_set(&["server.transports", "server.listen"]),
            StartError::Rdma(_) => self.first_set(&["rdma.directory", "rdma.provider"]),
            StartError::Users(_) => self.first_set(&["server.users"]),
            StartError::SidMap(_) => self.first_set(&["server.sid_map"]),
            StartError::Certificate(_) | StartError::Quic(_) => {
                self.first_set(&["quic.certificate", "quic.key", "quic.client_ca"])
            }
            StartError::Metrics { .. } => self.first_set(&["metrics.token_file", "metrics.listen"]),
            StartError::Audit { .. } => self.first_set(&["audit.target"]),
            StartError::Ring(_) => self.first_set(&["server.io"]),
            StartError::Thread(_) => None,
        };
        let place = key
            .and_then(|key| self.origin(&key))
            .map(|place| place.to_string());
        place.or_else(|| self.file().map(|file| file.display().to_string()))
    }

    fn key_of_share(&self, name: &str, key: &str) -> Option<String> {
        let mut shares = self.shares.iter();
        let index = shares.position(|share| share.name.get_ref() == name)?;
        Some(format!("share.{index}.{key}"))
    }

    fn first_set(&self, keys: &[&str]) -> Option<String> {
        let set = keys.iter().find(|key| self.origin(key).is_some());
        set.map(|key| (*key).to_owned())
    }
}
