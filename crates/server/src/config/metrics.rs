//! The section `[metrics]`: the HTTP server for metrics and health.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::{Check, ConfigError};

/// Shortest token in bytes: a random one of 16 characters has at least 64 bits.
const TOKEN_MIN: usize = 16;
/// Longest token in bytes: the header with it fits a request.
const TOKEN_MAX: usize = 1024;

/// The section `[metrics]` of the configuration: the HTTP server for metrics and health.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MetricsSection {
    /// IP address and TCP port to listen on, such as `127.0.0.1:9445`. `None` (the default): the
    /// server does not listen. Other addresses than those of this machine need a token or
    /// `allow_remote`.
    #[schemars(with = "Option<String>")]
    pub listen: Option<Spanned<SocketAddr>>,
    /// Token that clients must send in the header `Authorization: Bearer TOKEN`, 16 to 1024 visible
    /// ASCII characters. `None` (the default): no token, or that of `token_file`.
    #[schemars(with = "Option<String>")]
    pub token: Option<Spanned<Token>>,
    /// Path of a file with the token; white space around it does not count. `None` (the default):
    /// no file.
    #[schemars(with = "Option<PathBuf>")]
    pub token_file: Option<Spanned<PathBuf>>,
    /// Whether the server listens on an address of a network without a token. Every client of the
    /// network then sees the metrics, and the names of users and open files. Default: no.
    pub allow_remote: bool,
    /// Whether the server also serves a web page with its activity under the path `/`. Default: no.
    pub page: bool,
}

/// A secret of 16 to 1024 visible ASCII characters. Its debug form and its serialized form hide it.
#[derive(Clone, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub struct Token(String);

/// Text in place of a token.
const HIDDEN: &str = "(hidden)";

impl Serialize for Token {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(HIDDEN)
    }
}

impl Token {
    /// Returns true if a client sent this token. The time does not depend on the position of a
    /// difference.
    pub(crate) fn is(&self, sent: &[u8]) -> bool {
        let token = self.0.as_bytes();
        let differences = token.iter().zip(sent).map(|(one, other)| one ^ other);
        let difference = differences.fold(0, |all, difference| all | difference);
        token.len() == sent.len() && std::hint::black_box(difference) == 0
    }
}

impl TryFrom<String> for Token {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if !(TOKEN_MIN..=TOKEN_MAX).contains(&text.len()) {
            return Err(format!("a token has {TOKEN_MIN} to {TOKEN_MAX} characters"));
        }
        match text.bytes().all(|byte| byte.is_ascii_graphic()) {
            true => Ok(Self(text)),
            false => Err("a token consists of visible ASCII characters".to_owned()),
        }
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

impl Check<'_> {
    pub(super) fn metrics(&self, metrics: &MetricsSection) -> Result<(), ConfigError> {
        let MetricsSection {
            listen,
            token,
            token_file,
            allow_remote,
            page: _,
        } = metrics;
        if let (Some(_), Some(file)) = (token, token_file) {
            let what = "metrics.token_file: not together with metrics.token".to_owned();
            return Err(self.error(file, what));
        }
        let Some(listen) = listen else {
            return Ok(());
        };
        let is_local = listen.get_ref().ip().to_canonical().is_loopback();
        let has_token = token.is_some() || token_file.is_some();
        if !is_local && !has_token && !allow_remote {
            let what = format!(
                "metrics.listen: other machines can reach {}: set metrics.token_file, or \
                 metrics.allow_remote = true if all of them may see users and files",
                listen.get_ref()
            );
            return Err(self.error(listen, what));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::Config;

    const TOKEN: &str = "0123456789abcdef";

    fn parse(keys: &str) -> Result<MetricsSection, String> {
        let text = format!("[metrics]\n{keys}");
        let parsed = Config::parse(Path::new("smbeam.toml"), &text);
        parsed
            .map(|config| config.metrics)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn only_this_machine_needs_no_token() {
        assert!(parse("").expect("the default").listen.is_none());
        for address in ["127.0.0.1:9445", "[::1]:9445", "[::ffff:127.0.0.1]:1"] {
            parse(&format!("listen = \"{address}\"\n")).expect(address);
        }
        for address in ["0.0.0.0:9445", "[::]:9445", "192.0.2.1:9445"] {
            let listen = format!("listen = \"{address}\"\n");
            let error = parse(&listen).expect_err(address);
            let expected = "smbeam.toml, line 2: metrics.listen: other machines can reach";
            assert!(error.starts_with(expected), "{error}");
            for key in [
                "allow_remote = true\n".to_owned(),
                format!("token = \"{TOKEN}\"\n"),
                "token_file = \"token\"\n".to_owned(),
            ] {
                parse(&format!("{listen}{key}")).expect(&key);
            }
        }
    }

    #[test]
    fn bad_values_have_a_reason() {
        for (keys, expected) in [
            (
                "listen = \"9445\"\n",
                "line 2: metrics.listen: invalid socket address",
            ),
            (
                "token = \"short\"\n",
                "line 2: metrics.token: a token has 16 to 1024",
            ),
            (
                "token = \"0123456789 abcdef\"\n",
                "line 2: metrics.token: a token consists of",
            ),
            ("port = 9445\n", "line 2: metrics.port: unknown key"),
            (
                "token = \"0123456789abcdef\"\ntoken_file = \"x\"\n",
                "line 3: metrics.token_file: not together",
            ),
        ] {
            let error = parse(keys).expect_err(keys);
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_token_is_itself_alone() {
        let token = Token::try_from(TOKEN.to_owned()).expect("a token");
        for (sent, expected) in [
            (TOKEN, true),
            ("0123456789abcdeF", false),
            ("0123456789abcde", false),
            ("0123456789abcdef0", false),
            ("", false),
        ] {
            assert_eq!(token.is(sent.as_bytes()), expected, "{sent}");
        }
        assert_eq!(format!("{token:?}"), "Token");
    }
}
