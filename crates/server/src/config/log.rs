//! The section `[log]`: level and format of the log.

use serde::Deserialize;
use toml::Spanned;

use super::{Check, ConfigError, Levels, unplaced};

/// The section `[log]` of the configuration: level and format of the log.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LogSection {
    /// Format of log lines: text or JSON. Default: text.
    pub format: LogFormat,
    /// Levels of the log in text form: `off`, `error`, `warn`, `info`, `debug` or `trace`, or a
    /// list with levels of single modules such as `info,smbeam_server=debug`. Default: `info`.
    /// [`Levels`] parses it.
    pub level: Spanned<String>,
    /// Whether the log limits the rate of each message: it omits the lines above the limit, and a
    /// later line has their number. Default: yes.
    pub rate_limited: bool,
}

impl LogSection {
    /// The parsed levels.
    ///
    /// # Errors
    /// The reason, with the key.
    pub(crate) fn levels(&self) -> Result<Levels, String> {
        let levels = self.level.get_ref().parse();
        levels.map_err(|error| format!("log.level: {error}"))
    }
}

impl Default for LogSection {
    fn default() -> Self {
        Self {
            format: LogFormat::Human,
            rate_limited: true,
            level: unplaced("info".to_owned()),
        }
    }
}

/// The value of `log.format`: the format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// One line of text for each event.
    Human,
    /// One JSON object for each event.
    Json,
}

impl std::str::FromStr for LogFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "human" => Ok(Self::Human),
            "json" => Ok(Self::Json),
            _ => Err(format!("unknown format `{text}`: use human or json")),
        }
    }
}

impl Check<'_> {
    pub(super) fn log(&self, log: &LogSection) -> Result<(), ConfigError> {
        let levels = log.levels();
        levels
            .map(drop)
            .map_err(|what| self.error(&log.level, what))
    }
}
