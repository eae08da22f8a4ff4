//! The values of a configuration that are in effect, and where each comes from.

use toml::{Table, Value};

use super::changes::values;
use super::schema::keys;
use super::{Config, Place};

/// A value of a configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct EffectiveValue {
    /// Full name of the key, such as `server.workers` or `share.path`.
    pub key: String,
    /// Index of the share, from 0; `None` for a key of another section.
    pub share: Option<usize>,
    /// The value; `None` if the key is not set and has no default.
    pub value: Option<Value>,
    /// Where the value comes from; `None` for a default.
    pub origin: Option<Place>,
}

impl Config {
    /// Returns the value of each key, in the order of [`keys`]. Each share has all keys of shares.
    pub fn effective(&self) -> Vec<EffectiveValue> {
        let all = keys();
        let (of_shares, others): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|key| key.section == "share");
        let mut found = values(self);
        let others = others.into_iter().map(|key| EffectiveValue {
            value: found.remove(&key.name),
            origin: self.origin(&key.name),
            key: key.name,
            share: None,
        });
        let mut effective: Vec<EffectiveValue> = others.collect();
        for (index, share) in self.shares.iter().enumerate() {
            let mut table = Table::try_from(share).expect("values of TOML");
            effective.extend(of_shares.iter().map(|key| EffectiveValue {
                value: table.remove(&key.key),
                origin: self.origin(&format!("share.{index}.{}", key.key)),
                key: key.name.clone(),
                share: Some(index),
            }));
        }
        effective
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn each_value_has_its_origin() {
        let text = "[server]\nworkers = 2\n[[share]]\nname = \"a\"\npath = \"/\"\n";
        let config = Config::parse(Path::new("smbeam.toml"), text).expect("good");
        let effective = config.effective();
        let find = |key: &str| effective.iter().find(|value| value.key == key).expect(key);
        let workers = find("server.workers");
        assert_eq!(workers.value, Some(Value::Integer(2)));
        let origin = workers.origin.as_ref().map(ToString::to_string);
        assert_eq!(origin.as_deref(), Some("smbeam.toml, line 2"));
        let level = find("log.level");
        assert_eq!((&level.value, &level.origin), (&Some("info".into()), &None));
        assert_eq!(find("server.users").value, None);
        let path = find("share.path");
        assert_eq!(path.share, Some(0));
        assert!(path.origin.is_some() && find("share.guest").origin.is_none());
    }
}
