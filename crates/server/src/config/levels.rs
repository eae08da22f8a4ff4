//! The level of the log, for the server or for each of its parts.

use std::str::FromStr;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;

/// Parts of the program that log. A level for another name would have no effect.
const PARTS: [&str; 11] = [
    "smbeam",
    "smbeam_auth",
    "smbeam_client",
    "smbeam_net",
    "smbeam_proto",
    "smbeam_rdma",
    "smbeam_ring",
    "smbeam_server",
    "smbeam_vfs",
    "quinn_proto",
    "rustls",
];

/// Levels of the log: one for all parts of the program, and others for single parts.
///
/// The form is `LEVEL` or `PART=LEVEL`, several separated by commas, as in
/// `info,smbeam_server=debug`. Parts without a level log errors only, if no level is for all parts.
#[derive(Clone, Debug, PartialEq)]
pub struct Levels(pub(crate) Targets);

impl Levels {
    /// Returns the filter for a subscriber of [`tracing`].
    pub fn targets(&self) -> Targets {
        self.0.clone()
    }
}

impl FromStr for Levels {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut targets = Targets::new().with_default(LevelFilter::ERROR);
        for directive in text.split(',').map(str::trim) {
            targets = match directive.split_once('=') {
                None => targets.with_default(level(directive)?),
                Some((part, name)) => targets.with_target(checked(part)?, level(name)?),
            };
        }
        Ok(Self(targets))
    }
}

fn level(name: &str) -> Result<LevelFilter, String> {
    match &*name.trim().to_ascii_lowercase() {
        "off" => Ok(LevelFilter::OFF),
        "error" => Ok(LevelFilter::ERROR),
        "warn" => Ok(LevelFilter::WARN),
        "info" => Ok(LevelFilter::INFO),
        "debug" => Ok(LevelFilter::DEBUG),
        "trace" => Ok(LevelFilter::TRACE),
        _ => Err(format!(
            "unknown level `{name}`: use off, error, warn, info, debug or trace"
        )),
    }
}

/// Checks the name of a part: a crate, or a module of a crate.
fn checked(part: &str) -> Result<&str, String> {
    let part = part.trim();
    let name = part.split("::").next().unwrap_or_default();
    if PARTS.contains(&name) {
        return Ok(part);
    }
    let known = PARTS.join(", ");
    Err(format!("unknown part `{part}` of the program: use {known}"))
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn a_level_is_for_all_parts_or_for_one() {
        let Levels(targets) = "info, smbeam_server::log=DEBUG".parse().expect("good");
        assert!(targets.would_enable("smbeam_net", &Level::INFO));
        assert!(!targets.would_enable("smbeam_net", &Level::DEBUG));
        assert!(targets.would_enable("smbeam_server::log", &Level::DEBUG));
        assert!(!targets.would_enable("smbeam_server", &Level::DEBUG));
        let Levels(targets) = "smbeam_vfs=trace".parse().expect("good");
        assert!(targets.would_enable("smbeam_vfs", &Level::TRACE));
        assert!(targets.would_enable("smbeam_net", &Level::ERROR));
        assert!(!targets.would_enable("smbeam_net", &Level::WARN));
    }

    #[test]
    fn unknown_levels_and_parts_are_errors() {
        for bad in [
            "verbose",
            "loud=",
            "",
            "info,",
            ",",
            "warning",
            "3",
            "smbeam_server",
            "info,server=debug",
            "smbeam_server=loud",
            "info debug",
            "info;debug",
            "smbeam_server[x]=info",
            "=info",
        ] {
            assert!(bad.parse::<Levels>().is_err(), "{bad}");
        }
        let error = "info,server=debug".parse::<Levels>().expect_err("bad");
        assert!(
            error.contains("`server`") && error.contains("smbeam_server"),
            "{error}"
        );
    }
}
