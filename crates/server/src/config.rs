//! `smbeam.toml`: the configuration of a server. Errors name the key and the line.

mod changes;
mod error;
mod levels;
mod limits;
mod listen;
mod log;
mod metrics;
mod numbers;
mod paths;
mod quic;
mod rdma;
mod security;
mod server;
mod share;
mod state;
mod sync;
mod tcp;

use std::path::{Path, PathBuf};

use net::{Endpoint, Transport};
use serde::Deserialize;
use toml::Spanned;

use crate::interfaces::Entry;

pub use self::changes::needing_restart;
pub use self::error::ConfigError;
pub use self::levels::Levels;
pub use self::limits::LimitsSection;
pub use self::listen::ListenAddress;
pub use self::log::{LogFormat, LogSection};
pub use self::metrics::{MetricsSection, Token};
pub use self::rdma::{RdmaProvider, RdmaSection};
pub(crate) use self::security::dialect;
pub use self::security::{GmacChoice, SecuritySection};
pub use self::server::{IoChoice, ServerSection};
pub use self::share::{AclChoice, AclXattr, Names, ShareSection};
pub use self::sync::SyncChoice;
pub use quic::{ClientChoice, CongestionChoice, QuicSection, TransportSecurity};
pub use tcp::{PlacementChoice, TcpSection};

/// Wraps a configuration value that does not come from a file, such as a default. The wrapper has
/// the empty range 0..0 instead of a position in the file, so error messages about the value have
/// no line number.
pub fn unplaced<T>(value: T) -> Spanned<T> {
    Spanned::new(0..0, value)
}

/// The configuration of a server: the parsed contents of `smbeam.toml`. [`Config::parse`] and
/// [`Config::checked`] check the values.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
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
    /// The section `[log]`: level and format of the log.
    #[serde(default)]
    pub log: LogSection,
    /// The section `[metrics]`: the HTTP server for metrics and health.
    #[serde(default)]
    pub metrics: MetricsSection,
    /// The sections `[[share]]`: one for each share.
    #[serde(default, rename = "share")]
    pub shares: Vec<ShareSection>,
    /// Path and text of the file that the configuration was read from; both empty without a file.
    #[serde(skip)]
    pub source: Source,
}

/// Path and text of a configuration file. Both are empty for a configuration without a file.
#[derive(Debug, Default)]
pub struct Source {
    file: PathBuf,
    text: String,
}

impl Config {
    /// Reads, parses and checks a configuration file.
    ///
    /// # Errors
    /// The file cannot be read, it is malformed, or a value is invalid.
    pub fn load(file: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(file).map_err(|error| ConfigError {
            file: file.to_owned(),
            line: None,
            what: format!("cannot read the configuration: {error}"),
            unread: Some(error.kind()),
        })?;
        Self::parse(file, &text)
    }

    /// Parses and checks the text `text` of a configuration file. `file` is the name of the file in
    /// errors; the function does not read it. Relative paths start at the directory of `file`.
    ///
    /// # Errors
    /// The text is malformed, or a value is invalid.
    pub fn parse(file: &Path, text: &str) -> Result<Self, ConfigError> {
        let mut config: Self = toml::from_str(text).map_err(|error| ConfigError {
            file: file.to_owned(),
            line: error.span().map(|span| line_of(text, span.start)),
            what: error.message().to_owned(),
            unread: None,
        })?;
        config.source = Source {
            file: file.to_owned(),
            text: text.to_owned(),
        };
        config.resolve(file);
        config.check(&Check { file, text })?;
        Ok(config)
    }

    /// Checks the values of a configuration that does not come from a file, and returns it
    /// unchanged. Error messages name `source` in place of a file.
    ///
    /// # Errors
    /// A value is invalid.
    pub fn checked(self, source: &Path) -> Result<Self, ConfigError> {
        self.check(&Check {
            file: source,
            text: "",
        })?;
        Ok(self)
    }

    fn check(&self, check: &Check<'_>) -> Result<(), ConfigError> {
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

    /// Returns the path of the file that the configuration was read from; `None` if it does not
    /// come from a file.
    pub fn file(&self) -> Option<&Path> {
        let file = self.source.file.as_path();
        (!file.as_os_str().is_empty()).then_some(file)
    }

    /// Line of a value in the file, from 1; `None` for a default value.
    pub(crate) fn line<T>(&self, value: &Spanned<T>) -> Option<usize> {
        let is_placed = value.span().end > 0;
        is_placed.then(|| line_of(&self.source.text, value.span().start))
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

/// The line number of a byte of a text, from 1.
fn line_of(text: &str, byte: usize) -> usize {
    let before = text.get(..byte).unwrap_or(text);
    before.bytes().filter(|byte| *byte == b'\n').count() + 1
}

/// Checks values, after the parser has checked keys and types.
struct Check<'a> {
    file: &'a Path,
    text: &'a str,
}

impl Check<'_> {
    fn error<T>(&self, at: &Spanned<T>, what: String) -> ConfigError {
        // A default value has no line.
        let line = (at.span().end > 0).then(|| line_of(self.text, at.span().start));
        ConfigError {
            file: self.file.to_owned(),
            line,
            what,
            unread: None,
        }
    }
}

#[cfg(test)]
mod tests {
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
            "smbeam.toml: server.transports: the list is empty"
        );
        let text = "[server]\n\nworker = 2\n";
        assert!(error(text).starts_with("smbeam.toml, line 3: unknown field `worker`"));
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
