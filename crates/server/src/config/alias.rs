//! Other names of keys of shares. The text of a configuration may have either name.

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::error::ConfigError;
use super::sources::Sources;

/// The other names, and the keys that they stand for.
pub(super) const ALIASES: [(&str, &str); 1] = [("users", "valid_users")];

/// Replaces the other names of keys in all shares.
pub(super) fn replace_aliases(
    sources: &Sources,
    root: &mut DeTable<'_>,
) -> Result<(), ConfigError> {
    let Some(DeValue::Array(shares)) = root.get_mut("share").map(Spanned::get_mut) else {
        return Ok(());
    };
    for share in shares.iter_mut() {
        if let DeValue::Table(keys) = share.get_mut() {
            replace_in(sources, keys)?;
        }
    }
    Ok(())
}

fn replace_in(sources: &Sources, keys: &mut DeTable<'_>) -> Result<(), ConfigError> {
    for (alias, name) in ALIASES {
        let Some(span) = keys.get_key_value(alias).map(|(key, _)| key.span()) else {
            continue;
        };
        if keys.contains_key(name) {
            let what = format!("share.{alias}: the share has {name}, too: use one of them");
            return Err(ConfigError::at(sources, &span, what));
        }
        if let Some(value) = keys.remove(alias) {
            keys.insert(Spanned::new(span, DeString::Borrowed(name)), value);
        }
    }
    Ok(())
}
