//! The log of the client commands, on standard error. Without an option nothing is logged.
//!
//! Standard output belongs to the result of a command. A progress bar is removed while a line is
//! written, and drawn again after it.

use std::io::{self, Write};

use clap::parser::ValueSource;
use clap::{ArgAction, ArgMatches, Args};
use smbeam_server::config::Levels;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::output;

/// The environment variable with the levels of the log.
pub(crate) const LEVEL_VARIABLE: &str = "SMBEAM_LOG";

/// Options for the log of a client command.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct LogArguments {
    /// Log to standard error: -v connections, -vv also each step and each failed request, -vvv
    /// everything. Transfers also print the name of each completed file, and rm of each removed
    /// one.
    #[arg(short, long, action = ArgAction::Count)]
    verbose: u8,
    /// Level of the log: off, error, warn, info, debug or trace, or a list such as
    /// `info,smbeam_net=debug`.
    #[arg(long, value_name = "LEVEL", env = LEVEL_VARIABLE)]
    log_level: Option<Levels>,
}

impl LogArguments {
    /// Whether the command prints the name of each completed file.
    pub(crate) fn names_files(&self) -> bool {
        self.verbose > 0
    }
}

/// Starts the log as the options of a client command, or the environment, want it.
pub(crate) fn start(command: &ArgMatches) {
    if let Some(targets) = targets(command) {
        let layer = tracing_subscriber::fmt::layer()
            .with_writer(|| Beside)
            .with_ansi(false);
        let started = tracing_subscriber::registry().with(targets).with(layer);
        // The process has no other log.
        let _ = started.try_init();
    }
}

/// The levels: those of `--log-level`, or else of `-v`, or else of the environment. `None` if the
/// command has none of them.
fn targets(command: &ArgMatches) -> Option<Targets> {
    let level = command.try_get_one::<Levels>("log_level").ok().flatten();
    let verbose = command.try_get_one::<u8>("verbose").ok().flatten();
    let is_explicit = || command.value_source("log_level") == Some(ValueSource::CommandLine);
    let by_count = match verbose.copied().unwrap_or(0) {
        0 => None,
        1 => Some(LevelFilter::INFO),
        2 => Some(LevelFilter::DEBUG),
        _ => Some(LevelFilter::TRACE),
    };
    match (level, by_count) {
        (Some(levels), None) => Some(levels.targets()),
        (Some(levels), Some(_)) if is_explicit() => Some(levels.targets()),
        (_, Some(level)) => Some(Targets::new().with_default(level)),
        (None, None) => None,
    }
}

/// Writes whole lines to standard error beside the progress bar. The layer writes each line with
/// one call.
struct Beside;

impl Write for Beside {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        output::beside_bar(&|| output::note_text(&String::from_utf8_lossy(line)));
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use tracing::Level;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        _log: LogArguments,
    }

    fn targets_of(line: &[&str]) -> Option<Targets> {
        let command = <Line as clap::CommandFactory>::command();
        let arguments = std::iter::once(&"smbeam").chain(line);
        targets(&command.try_get_matches_from(arguments).expect("options"))
    }

    #[test]
    fn each_flag_raises_the_level() {
        let enables = |line: &[&str], level: &Level| {
            targets_of(line).is_some_and(|targets| targets.would_enable("smbeam_client", level))
        };
        assert!(enables(&["-v"], &Level::INFO) && !enables(&["-v"], &Level::DEBUG));
        assert!(enables(&["-vv"], &Level::DEBUG) && !enables(&["-vv"], &Level::TRACE));
        assert!(enables(&["-v", "--verbose", "-v"], &Level::TRACE));
        let level = ["-vvv", "--log-level", "warn,smbeam_client=info"];
        assert!(enables(&level, &Level::INFO) && !enables(&level, &Level::DEBUG));
    }

    #[test]
    fn an_unknown_level_is_an_error() {
        assert!(Line::try_parse_from(["smbeam", "--log-level", "loud"]).is_err());
    }
}
