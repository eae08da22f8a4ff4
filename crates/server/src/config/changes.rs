//! Differences between two configurations, for a reload.

use std::collections::BTreeMap;

use toml::{Table, Value};

use super::Config;

/// Keys that only the start of a server reads.
const RESTART: [&str; 24] = [
    "server.name",
    "server.sid_map",
    "server.state_directory",
    "server.control_socket",
    "server.control_group",
    "server.workers",
    "server.io",
    "server.buffer_memory_mb",
    "server.blocking_threads",
    "tcp.placement",
    "quic.congestion",
    "quic.receive_window_kb",
    "quic.send_window_kb",
    "quic.max_datagram",
    "quic.idle_timeout_s",
    "quic.keep_alive_s",
    "quic.samba_writes",
    "rdma.provider",
    "rdma.directory",
    "metrics.listen",
    "metrics.token",
    "metrics.token_file",
    "metrics.allow_remote",
    "metrics.page",
];

/// The differences between two configurations.
#[derive(Debug, Default)]
pub struct Changes {
    /// The full keys with different values, sorted, such as `server.workers`.
    keys: Vec<String>,
    /// The shares that differ, such as `share "data" (added)`.
    shares: Vec<String>,
}

impl Changes {
    /// Compares two configurations. Values that stand for the default equal the default.
    pub fn new(old: &Config, new: &Config) -> Self {
        let (before, after) = (values(old), values(new));
        let keys = before.keys().chain(after.keys());
        let mut keys: Vec<String> = keys
            .filter(|key| before.get(*key) != after.get(*key))
            .cloned()
            .collect();
        keys.sort();
        keys.dedup();
        Self {
            keys,
            shares: changed_shares(old, new),
        }
    }

    /// Returns whether a key of this section differs.
    pub fn has_section(&self, section: &str) -> bool {
        let of_section =
            |key: &String| key.split_once('.').is_some_and(|(name, _)| name == section);
        self.keys.iter().any(of_section)
    }

    /// Returns the differences that a running server applies: keys and shares.
    pub fn live(&self) -> Vec<String> {
        let is_live = |key: &&String| !RESTART.contains(&key.as_str());
        let keys = self.keys.iter().filter(is_live);
        keys.chain(&self.shares).cloned().collect()
    }

    /// Returns the keys with differences that a running server cannot apply without a restart.
    pub fn needing_restart(&self) -> Vec<String> {
        let needs_restart = |key: &&String| RESTART.contains(&key.as_str());
        self.keys.iter().filter(needs_restart).cloned().collect()
    }
}

fn changed_shares(old: &Config, new: &Config) -> Vec<String> {
    let find = |config: &Config, name: &str| {
        let mut shares = config.shares.iter();
        shares.find(|share| share.name.get_ref() == name).cloned()
    };
    let described = |name: &str, how: &str| format!("share \"{name}\" ({how})");
    let removed = old.shares.iter().map(|share| share.name.get_ref());
    let removed = removed.filter(|name| find(new, name).is_none());
    let removed = removed.map(|name| described(name, "removed"));
    let others = new.shares.iter().filter_map(|share| {
        let name = share.name.get_ref();
        match find(old, name) {
            None => Some(described(name, "added")),
            Some(before) if before != *share => Some(described(name, "changed")),
            Some(_) => None,
        }
    });
    removed.chain(others).collect()
}

/// The values of all sections, by full key. Keys without a value are left out.
pub(super) fn values(config: &Config) -> BTreeMap<String, Value> {
    let table = Table::try_from(config).expect("a configuration consists of values of TOML");
    let mut values = BTreeMap::new();
    for (section, value) in table {
        if let Value::Table(keys) = value {
            let keys = keys.into_iter();
            values.extend(keys.map(|(key, value)| (format!("{section}.{key}"), value)));
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn changed_keys_and_shares_are_named() {
        let parse = |text: &str| Config::parse(Path::new("smbeam.toml"), text).expect("good");
        let old = parse(
            "[server]\nname = \"a\"\nworkers = 2\n[log]\nlevel = \"info\"\n\
             [[share]]\nname = \"one\"\npath = \"/\"\n[[share]]\nname = \"two\"\npath = \"/\"\n\
             [[share]]\nname = \"old\"\npath = \"/\"\n",
        );
        let new = parse(
            "[server]\nworkers = 2 # the same\nlisten = [\"::1\"]\n[log]\nlevel = \"debug\"\n\
             [quic]\nkeep_alive_s = 10 # the default\n\
             [[share]]\nname = \"two\"\npath = \"/\"\n[[share]]\nname = \"one\"\npath = \"/tmp\"\n\
             [[share]]\nname = \"new\"\npath = \"/\"\n",
        );
        let changes = Changes::new(&old, &new);
        assert_eq!(changes.needing_restart(), ["server.name"]);
        let live = [
            "log.level",
            "server.listen",
            "share \"old\" (removed)",
            "share \"one\" (changed)",
            "share \"new\" (added)",
        ];
        assert_eq!(changes.live(), live);
        assert!(changes.has_section("log") && !changes.has_section("quic"));
        let none = Changes::new(&new, &new);
        assert!(none.live().is_empty() && none.needing_restart().is_empty());
    }

    #[test]
    fn every_key_that_needs_a_restart_exists() {
        let known = super::super::schema::keys();
        for key in RESTART {
            assert!(known.iter().any(|known| known.name == key), "{key}");
        }
    }
}
