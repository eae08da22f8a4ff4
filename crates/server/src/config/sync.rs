//! The key `sync` of a share: when written data reach stable storage.

use proto::server::config::SyncPolicy;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The value of `sync` in a section `[[share]]`: the effect of FLUSH and of write-through (the flag
/// of a WRITE, and the option with which a client opens a file).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SyncChoice {
    /// FLUSH and write-through have no effect: data that only the client has must survive. As
    /// Samba's `strict sync = no`.
    Client,
    /// FLUSH and write-through put data on stable storage. As Samba's defaults, `strict sync = yes`
    /// and `sync always = no`.
    #[default]
    Flush,
    /// Every write is a write-through. As Samba's `sync always = yes`.
    Always,
}

impl From<SyncChoice> for SyncPolicy {
    fn from(choice: SyncChoice) -> Self {
        match choice {
            SyncChoice::Client => Self::Client,
            SyncChoice::Flush => Self::Flush,
            SyncChoice::Always => Self::Always,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::config::{Config, SyncChoice};

    fn sync_of(line: &str) -> Result<SyncChoice, String> {
        let text = format!("[[share]]\nname = \"data\"\npath = \"/\"\n{line}\n");
        let config = Config::parse(Path::new("smbeam.toml"), &text);
        config
            .map(|config| config.shares[0].sync)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_share_has_one_of_three_values() {
        assert_eq!(sync_of(""), Ok(SyncChoice::Flush));
        assert_eq!(sync_of("sync = \"client\""), Ok(SyncChoice::Client));
        assert_eq!(sync_of("sync = \"flush\""), Ok(SyncChoice::Flush));
        assert_eq!(sync_of("sync = \"always\""), Ok(SyncChoice::Always));
        let error = sync_of("sync = \"never\"").expect_err("no value");
        assert!(
            error.starts_with("smbeam.toml, line 4: share.sync: unknown variant `never`"),
            "{error}"
        );
    }
}
