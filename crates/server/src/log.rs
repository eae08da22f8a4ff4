//! The log of the server, as text or as JSON.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use crate::config::{LogFormat, LogSection};

/// Starts to log to standard error, in the format and with the level of `section`. Call it once per
/// process, before the server starts.
///
/// # Errors
/// `log.level` is not a valid filter.
///
/// # Panics
/// A log was started before.
pub fn start(section: &LogSection) -> Result<(), String> {
    let filter = EnvFilter::try_new(section.level.get_ref())
        .map_err(|error| format!("log.level: {error}"))?;
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    match section.format {
        LogFormat::Human => log.with_target(false).init(),
        LogFormat::Json => log.json().init(),
    }
    Ok(())
}
