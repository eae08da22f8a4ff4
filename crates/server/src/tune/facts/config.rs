//! Facts about the configuration.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::config::{Config, IoChoice};

/// Facts about the configuration of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigFacts {
    /// `server.workers`; 0 for one worker for each processor.
    pub workers: usize,
    /// `server.buffer_memory_mb`: MiB of I/O buffers of each worker.
    pub buffer_memory_mb: usize,
    /// `server.blocking_threads` of each worker.
    pub blocking_threads: usize,
    /// Whether the server must use epoll in place of io_uring.
    pub is_epoll: bool,
    /// `server.multichannel`.
    pub multichannel: bool,
    /// `server.transports`.
    pub transports: Vec<String>,
    /// `limits.credits`: most credits of a connection.
    pub credits: u16,
    /// `limits.channels_per_session`.
    pub channels_per_session: usize,
    /// `limits.max_read` in bytes.
    pub max_read: u32,
    /// `limits.max_write` in bytes.
    pub max_write: u32,
    /// `security.signing_required`.
    pub signing_required: bool,
    /// `security.encryption_required`, or that of a share.
    pub encryption_required: bool,
    /// `log.level`.
    pub log_level: String,
    /// Full names of the keys that a file or a variable sets.
    pub set_keys: BTreeSet<String>,
}

impl ConfigFacts {
    /// Returns whether a file or a variable sets the key.
    pub(crate) fn is_set(&self, key: &str) -> bool {
        self.set_keys.contains(key)
    }
}

pub(super) fn gather(config: &Config) -> ConfigFacts {
    let Config {
        server,
        security,
        limits,
        log,
        shares,
        ..
    } = config;
    let transports = server.transports.iter();
    let effective = config.effective().into_iter();
    let set = effective.filter(|value| value.origin.is_some());
    ConfigFacts {
        workers: *server.workers.get_ref(),
        buffer_memory_mb: server.buffer_memory_mb,
        blocking_threads: *server.blocking_threads.get_ref(),
        is_epoll: server.io == IoChoice::Epoll,
        multichannel: server.multichannel,
        transports: transports.map(|it| it.get_ref().clone()).collect(),
        credits: limits.credits,
        channels_per_session: limits.channels_per_session,
        max_read: limits.max_read,
        max_write: limits.max_write,
        signing_required: security.signing_required,
        encryption_required: security.encryption_required
            || shares.iter().any(|share| share.encryption_required),
        log_level: log.level.get_ref().clone(),
        set_keys: set.map(|value| value.key).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn set_keys_are_known() {
        let text = "[server]\nworkers = 2\n[limits]\ncredits = 64\n";
        let config = Config::parse(Path::new("smbeam.toml"), text).expect("good");
        let facts = gather(&config);
        assert_eq!((facts.workers, facts.credits), (2, 64));
        assert!(facts.is_set("limits.credits") && !facts.is_set("log.level"));
    }
}
