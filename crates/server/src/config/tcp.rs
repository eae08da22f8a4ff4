//! `[tcp]`: socket options of TCP and NetBIOS connections, and the worker that serves them.

use std::time::Duration;

use net::{KeepAlive, TcpOptions};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::{Check, ConfigError, unplaced};

/// The section `[tcp]` of the configuration: socket options of TCP and NetBIOS connections, and the
/// choice of the worker thread for a new connection.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TcpSection {
    /// Whether the kernel sends short segments at once (TCP_NODELAY). Default: yes.
    pub no_delay: bool,
    /// Whether the kernel acknowledges the first segments at once (TCP_QUICKACK). Default: no.
    pub quick_ack: bool,
    /// Seconds without data before the first keep-alive probe (TCP_KEEPIDLE); 0 disables probes.
    /// Default: 120.
    #[schemars(with = "u64")]
    pub keep_alive_idle_s: Spanned<u64>,
    /// Seconds between keep-alive probes (TCP_KEEPINTVL). Default: 15.
    pub keep_alive_interval_s: u64,
    /// Number of unanswered probes after which the connection ends (TCP_KEEPCNT). Default: 8.
    pub keep_alive_count: u32,
    /// Seconds that sent data may stay unacknowledged before the kernel closes the connection
    /// (TCP_USER_TIMEOUT); 0 for the default of the kernel. Default: 0.
    pub user_timeout_s: u64,
    /// Rule by which the server selects the worker thread for a new connection. Default: the worker
    /// with the fewest connections.
    pub placement: PlacementChoice,
}

/// The value of `tcp.placement`: the rule by which the server selects the worker thread for a new
/// connection. The rule decides between the workers with the fewest connections of the same client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PlacementChoice {
    /// The worker with the fewest connections of all clients.
    Fewest,
    /// The worker on the processor that receives the packets of the connection. Each worker is
    /// bound to a processor.
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
    /// The socket options.
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
    fn values_that_the_kernel_rejects_are_errors() {
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
