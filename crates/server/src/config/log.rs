//! The section `[log]`: destination, level and format of the log.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::{Check, ConfigError, Levels, unplaced};

/// The section `[log]` of the configuration: destination, level and format of the log.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LogSection {
    /// Destination of the log: standard error or journald. Messages for journald have priorities
    /// and fields, and `format` does not matter. Default: standard error.
    pub target: LogTarget,
    /// Format of log lines: text or JSON. Default: text.
    pub format: LogFormat,
    /// Levels of the log in text form: `off`, `error`, `warn`, `info`, `debug` or `trace`, or a
    /// list with levels of single modules such as `info,smbeam_server=debug`. Default: `info`.
    /// [`Levels`] parses it.
    #[schemars(with = "String")]
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
            target: LogTarget::Stderr,
            format: LogFormat::Human,
            rate_limited: true,
            level: unplaced("info".to_owned()),
        }
    }
}

/// The value of `log.target`: the destination of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogTarget {
    /// Standard error.
    #[default]
    Stderr,
    /// The socket of journald.
    Journald,
}

/// The value of `log.format`: the format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
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

impl LogFormat {
    /// Returns the `log.format` that a configuration file sets, even if the rest of the file is not
    /// valid, so that errors about the file have this format. The default (text) if the file cannot
    /// be read.
    pub fn of_file(file: &Path) -> Self {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let mut lines = text.lines().filter_map(|line| line.split_once('='));
        let is_json = |(key, value): (&str, &str)| {
            key.trim() == "format"
                && value
                    .trim_start()
                    .trim_start_matches(['"', '\''])
                    .starts_with("json")
        };
        match lines.any(is_json) {
            true => Self::Json,
            false => Self::Human,
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
