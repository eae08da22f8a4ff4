//! `smbeam.toml`: the configuration of a server. Errors name the key and the line.

mod access;
mod alias;
mod audit;
mod changes;
mod effective;
mod error;
mod example;
mod include;
mod layers;
mod levels;
mod limits;
mod listen;
mod log;
mod merge;
mod metrics;
mod near;
mod numbers;
mod origin;
mod paths;
mod quic;
mod rdma;
mod read;
mod schema;
mod security;
mod server;
mod share;
mod sources;
mod start_error;
mod state;
mod sync;
mod tcp;
mod variables;

use std::path::Path;

use net::{Endpoint, Transport};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::Spanned;

use crate::interfaces::Entry;

pub(crate) use self::access::{host_rules, principal, share_users};
pub use self::audit::{AuditChoice, AuditSection, AuditTarget};
pub use self::changes::Changes;
pub use self::effective::EffectiveValue;
pub use self::error::ConfigError;
pub use self::example::example;
pub use self::layers::Layers;
pub use self::levels::Levels;
pub use self::limits::LimitsSection;
pub use self::listen::ListenAddress;
pub use self::log::{LogFormat, LogSection, LogTarget};
pub use self::metrics::{MetricsSection, Token};
pub use self::rdma::{RdmaProvider, RdmaSection};
pub use self::schema::{Key, Kind, keys, schema};
pub(crate) use self::security::dialect;
pub use self::security::{GmacChoice, SecuritySection};
pub use self::server::{IoChoice, ServerSection};
pub use self::share::{AclChoice, AclXattr, Names, ShareSection};
pub use self::sources::{Origin, Place, Source};
pub use self::sync::SyncChoice;
pub use quic::{ClientChoice, CongestionChoice, QuicSection, TransportSecurity};
pub use tcp::{PlacementChoice, TcpSection};

/// Wraps a configuration value that does not come from a file, such as a default. The wrapper has
/// the empty range 0..0 instead of a position in the file, so error messages about the value have
/// no line number.
pub fn unplaced<T>(value: T) -> Spanned<T> {
    Spanned::new(0..0, value)
}

/// The sections of a configuration.
pub(crate) const SECTIONS: [&str; 10] = [
    "server", "security", "tcp", "quic", "rdma", "limits", "log", "audit", "metrics", "share",
];

/// The configuration of a server: the parsed contents of `smbeam.toml`. [`Layers::load`],
/// [`Config::parse`] and [`Config::checked`] check the values.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(
    title = "smbeam.toml",
    description = "The configuration of an smbeam server."
)]
pub struct Config {
    /// Further files of the configuration, as paths relative to the main file. The name of a file
    /// may have wildcards, such as `conf.d/*.toml`. Only the main file may have this key.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub include: Vec<String>,
    /// The section `[server]`: name, addresses and threads of the server.
    #[serde(default)]
    pub server: ServerSection,
    /// The section `[security]`: signing, encryption and dialects.
    #[serde(default)]
    pub security: SecuritySection,
    /// The section `[tcp]`: socket options of TCP and NetBIOS connections.
    #[serde(default)]
    pub tcp: TcpSection,
    /// The section `[quic]`: certificates and parameters of QUIC connections.
    #[serde(default)]
    pub quic: QuicSection,
    /// The section `[rdma]`: devices and timing of SMB Direct connections.
    #[serde(default)]
    pub rdma: RdmaSection,
    /// The section `[limits]`: limits for connections and clients.
    #[serde(default)]
    pub limits: LimitsSection,
    /// The section `[log]`: destination, level and format of the log.
    #[serde(default)]
    pub log: LogSection,
    /// The section `[audit]`: the audit log, and the operations that it records.
    #[serde(default)]
    pub audit: AuditSection,
    /// The section `[metrics]`: the HTTP server for metrics and health.
    #[serde(default)]
    pub metrics: MetricsSection,
    /// The sections `[[share]]`: one for each share.
    #[serde(default, rename = "share")]
    pub shares: Vec<ShareSection>,
    /// The texts that the configuration comes from.
    #[serde(skip)]
    pub source: Source,
}

impl Config {
    /// Checks the values of a configuration that does not come from a file, and returns it
    /// unchanged. Error messages name `source` in place of a file.
    ///
    /// # Errors
    /// A value is invalid.
    pub fn checked(self, source: &Path) -> Result<Self, ConfigError> {
        self.check_values().map_err(|error| error.in_file(source))?;
        Ok(self)
    }

    fn check_values(&self) -> Result<(), ConfigError> {
        let check = Check(&self.source);
        check.server(&self.server)?;
        check.listen(self.server.listen.as_deref())?;
        check.numbers(self)?;
        check.security(&self.security)?;
        check.tcp(&self.tcp)?;
        check.quic(&self.quic)?;
        check.rdma(&self.rdma)?;
        check.log(&self.log)?;
        check.metrics(&self.metrics)?;
        check.shares(&self.shares)
    }

    /// The parsed `server.interfaces`. [`Config::parse`] has checked them.
    pub(crate) fn interfaces(&self) -> Vec<Entry> {
        let interfaces = self.server.interfaces.iter();
        interfaces
            .filter_map(|text| text.get_ref().parse().ok())
            .collect()
    }

    /// Returns the transports and ports to listen with, parsed from `server.transports`. The result
    /// omits texts that are not valid; [`Config::parse`] has refused these.
    pub fn endpoints(&self) -> Vec<Endpoint> {
        self.server
            .transports
            .iter()
            .filter_map(|text| Endpoint::expand(text.get_ref()).ok())
            .flatten()
            .collect()
    }

    /// Returns true if the server listens with this transport.
    pub(crate) fn listens_with(&self, transport: Transport) -> bool {
        let endpoints = self.endpoints();
        endpoints
            .iter()
            .any(|endpoint| endpoint.transport == transport)
    }
}

/// Checks values, after the parser has checked keys and types.
struct Check<'a>(&'a Source);

impl Check<'_> {
    fn error<T>(&self, at: &Spanned<T>, what: String) -> ConfigError {
        self.0.error(&at.span(), what)
    }

    /// An error of the value of a key.
    fn error_of_key(&self, key: &str, what: String) -> ConfigError {
        self.0.error(&self.0.span_of(key), what)
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn error(text: &str) -> String {
        let parsed = Config::parse(Path::new("smbeam.toml"), text);
        parsed.expect_err("a bad configuration").to_string()
    }

    #[test]
    fn an_empty_file_is_a_server_without_shares() {
        let config = Config::parse(Path::new("smbeam.toml"), "").expect("good");
        assert_eq!(
            config.endpoints(),
            ["tcp:445".parse().expect("an endpoint")]
        );
        assert!(config.shares.is_empty());
    }

    #[test]
    fn the_control_socket_may_be_disabled() {
        let socket = |text: &str| {
            let config = Config::parse(Path::new("smbeam.toml"), text).expect("good");
            config.server.control_socket
        };
        assert_eq!(socket(""), None);
        let empty = socket("[server]\ncontrol_socket = \"\"\n");
        assert_eq!(empty, Some(PathBuf::new()));
    }

    #[test]
    fn errors_name_the_key_and_the_line() {
        let text = "[server]\nworkers = 2\ntransports = [\"tcp\", \"quick:1\"]\n";
        let expected = "smbeam.toml, line 3: server.transports: unknown transport `quick`";
        assert!(error(text).starts_with(expected), "{}", error(text));
        let text = "[server]\ntransports = [\"tcp\", \"445\"]\n";
        let expected = "smbeam.toml, line 2: server.transports: the list has `tcp:445` twice";
        assert_eq!(error(text), expected);
        let text = "[server]\ntransports = []\n";
        assert_eq!(
            error(text),
            "smbeam.toml, line 2: server.transports: the list is empty"
        );
        let text = "[server]\n\nworker = 2\n";
        assert!(error(text).starts_with(
            "smbeam.toml, line 3: server.worker: unknown key: did you mean `workers`?"
        ));
        let text = "[server]\ninterfaces = [\"eth0;rdma\"]\n";
        assert!(error(text).starts_with("smbeam.toml, line 2: server.interfaces: `rdma` is"));
        let text = "[[share]]\nname = \"a\"\npath = \"/dev/null\"\n";
        assert_eq!(
            error(text),
            "smbeam.toml, line 3: share.path: /dev/null is not a directory"
        );
        let text = "[log]\nlevel = \"verbose\"\n";
        let expected = "smbeam.toml, line 2: log.level: unknown level `verbose`: use off, ";
        assert!(error(text).starts_with(expected), "{}", error(text));
        let text = "[security]\nmin_dialect = \"1.0\"\n";
        assert!(
            error(text)
                .starts_with("smbeam.toml, line 2: security.min_dialect: unknown dialect `1.0`")
        );
    }

    #[test]
    fn the_directory_of_a_share_may_be_missing() {
        let text = "[[share]]\nname = \"a\"\npath = \"/no/such/directory\"\n";
        let config = Config::parse(Path::new("smbeam.toml"), text).expect("a good configuration");
        assert_eq!(config.shares.len(), 1);
    }

    #[test]
    fn a_service_account_and_access_lists_of_windows_need_each_other() {
        let share = "[[share]]\nname = \"a\"\npath = \"/\"\n";
        for (keys, expected) in [
            (
                "acl = \"windows\"\n",
                "line 2: share.acl: \"windows\" needs",
            ),
            (
                "service_account = \"x\"\n",
                "line 4: share.service_account: only",
            ),
            (
                "acl = \"windows\"\nservice_account = \"x\"\nforce_user = \"y\"\n",
                "line 6: share.force_user: not with acl",
            ),
        ] {
            let error = error(&format!("{share}{keys}"));
            let expected = format!("smbeam.toml, {expected}");
            assert!(error.starts_with(&expected), "{error}");
        }
    }

    #[test]
    fn share_names_are_unique_without_regard_to_case() {
        let text = "[[share]]\nname = \"a\"\npath = \"/\"\n[[share]]\nname = \"A\"\npath = \"/\"\n";
        assert_eq!(
            error(text),
            "smbeam.toml, line 5: share.name: two shares have the name `A`"
        );
    }
}
