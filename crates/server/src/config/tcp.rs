//! `[tcp]`: what the kernel is told of connections of TCP and NetBIOS, and who serves them.

use std::time::Duration;

use net::{KeepAlive, TcpOptions};
use serde::Deserialize;
use toml::Spanned;

use super::{Check, ConfigError, unplaced};

/// `[tcp]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TcpSection {
    /// Sends what there is at once.
    pub no_delay: bool,
    /// Acknowledges at once what comes first.
    pub quick_ack: bool,
    /// After how long a silence a client is asked whether it is there; 0: never.
    pub keep_alive_idle_s: Spanned<u64>,
    /// How long after each question.
    pub keep_alive_interval_s: u64,
    /// How many questions stay unanswered before the connection ends.
    pub keep_alive_count: u32,
    /// How long what was sent may stay unacknowledged; 0: as long as the kernel tries.
    pub user_timeout_s: u64,
    /// Which worker serves a connection.
    pub placement: PlacementChoice,
}

/// `placement`: which worker serves a connection, among those that serve the fewest of its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlacementChoice {
    /// The one that serves the fewest.
    Fewest,
    /// The one on whose processor its packets arrive. Workers are bound to processors.
    IncomingCpu,
}

impl Default for TcpSection {
    fn default() -> Self {
        let keep_alive = KeepAlive::default();
        Self {
            no_delay: true,
            quick_ack: false,
            keep_alive_idle_s: unplaced(keep_alive.idle.as_secs()),
            keep_alive_interval_s: keep_alive.interval.as_secs(),
            keep_alive_count: keep_alive.count,
            user_timeout_s: 0,
            placement: PlacementChoice::Fewest,
        }
    }
}

impl TcpSection {
    /// What the kernel is told.
    pub(crate) fn options(&self) -> TcpOptions {
        let idle = *self.keep_alive_idle_s.get_ref();
        let keep_alive = || KeepAlive {
            idle: Duration::from_secs(idle),
            interval: Duration::from_secs(self.keep_alive_interval_s),
            count: self.keep_alive_count,
        };
        let user_timeout = self.user_timeout_s;
        TcpOptions {
            no_delay: self.no_delay,
            quick_ack: self.quick_ack,
            keep_alive: (idle > 0).then(keep_alive),
            user_timeout: (user_timeout > 0).then(|| Duration::from_secs(user_timeout)),
        }
    }
}

impl Check<'_> {
    pub(super) fn tcp(&self, tcp: &TcpSection) -> Result<(), ConfigError> {
        match tcp.options().checked() {
            Ok(_) => Ok(()),
            Err(error) => Err(self.error(&tcp.keep_alive_idle_s, format!("tcp: {error}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::Config;

    fn parse(text: &str) -> Result<Config, ConfigError> {
        Config::parse(Path::new("smbeam.toml"), text)
    }

    #[test]
    fn the_default_is_that_of_the_transport() {
        let config = parse("").expect("good");
        assert_eq!(config.tcp.options(), TcpOptions::default());
    }

    #[test]
    fn what_the_kernel_would_not_take_is_an_error() {
        let off = parse("[tcp]\nkeep_alive_idle_s = 0\nuser_timeout_s = 30\n").expect("good");
        let wanted = TcpOptions {
            keep_alive: None,
            user_timeout: Some(Duration::from_secs(30)),
            ..TcpOptions::default()
        };
        assert_eq!(off.tcp.options(), wanted);
        for text in [
            "keep_alive_idle_s = 40000",
            "keep_alive_count = 0",
            "user_timeout_s = 9999999",
            "placement = \"nearest\"",
        ] {
            assert!(parse(&format!("[tcp]\n{text}\n")).is_err(), "{text}");
        }
    }
}
