//! Differences between two configurations, for a reload.

use std::collections::BTreeMap;

use toml::{Table, Value};

use super::Config;

/// Keys that a running server applies.
const LIVE: [&str; 1] = ["log.level"];

/// Compares two configuration files. Returns the keys with different values that a running server
/// cannot apply without a restart, sorted, such as `server.workers`. For each changed share the
/// result has one entry, with the name of the share.
pub fn needing_restart(old: &Config, new: &Config) -> Vec<String> {
    let (old, new) = (flat(&old.source.text), flat(&new.source.text));
    let keys = old
        .keys()
        .chain(new.keys().filter(|key| !old.contains_key(*key)));
    let mut changed: Vec<String> = keys
        .filter(|key| old.get(*key) != new.get(*key) && !LIVE.contains(&key.as_str()))
        .cloned()
        .collect();
    changed.sort();
    changed
}

/// The values of a file by their full keys. Shares are named.
fn flat(text: &str) -> BTreeMap<String, Value> {
    let table: Table = toml::from_str(text).unwrap_or_default();
    let mut flat = BTreeMap::new();
    for (section, value) in table {
        match value {
            Value::Table(keys) => {
                let keys = keys.into_iter();
                flat.extend(keys.map(|(key, value)| (format!("{section}.{key}"), value)));
            }
            Value::Array(shares) => flat.extend(shares.into_iter().map(|share| {
                let name = share
                    .get("name")
                    .and_then(Value::as_str)
                    .unwrap_or_default();
                (format!("{section} \"{name}\""), share)
            })),
            other => drop(flat.insert(section, other)),
        }
    }
    flat
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
             [[share]]\nname = \"one\"\npath = \"/\"\n[[share]]\nname = \"two\"\npath = \"/\"\n",
        );
        let new = parse(
            "[server]\nworkers = 2 # the same\nlisten = [\"::1\"]\n[log]\nlevel = \"debug\"\n\
             [[share]]\nname = \"two\"\npath = \"/\"\n[[share]]\nname = \"one\"\npath = \"/tmp\"\n\
             [[share]]\nname = \"new\"\npath = \"/\"\n",
        );
        let expected = [
            "server.listen",
            "server.name",
            "share \"new\"",
            "share \"one\"",
        ];
        assert_eq!(needing_restart(&old, &new), expected);
        assert!(needing_restart(&new, &new).is_empty());
    }
}
