//! `smbeam get`: from a server to this machine.

use std::path::PathBuf;

use clap::Args;

use crate::copying::{self, CopyArguments};
use crate::failure::Failure;
use crate::location::Location;
use crate::report::Report;

/// What to get.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Files or directories on servers, and behind them where they go: a directory, or a new name for
    /// one; the current directory if left out. `*` and `?` in the last component of a URL stand for
    /// any characters, or one. `-` is standard output.
    #[arg(required = true, value_name = "URL... [PATH]")]
    locations: Vec<Location>,
    #[command(flatten)]
    copy: CopyArguments,
}

/// Runs `smbeam get`.
pub(crate) fn run(arguments: &Arguments, report: &Report) {
    let here = Location::Local(PathBuf::from("."));
    let (sources, target) = match arguments.locations.split_last() {
        Some((target @ Location::Local(_), sources)) if !sources.is_empty() => (sources, target),
        _ => (&arguments.locations[..], &here),
    };
    let is_local = |source: &&Location| matches!(source, Location::Local(_));
    if let Some(local) = sources.iter().find(is_local) {
        let reason = "not on a server: get brings files from a server, put the other way";
        return report.failed(&Failure::usage(local, reason));
    }
    if target.is_stream() {
        return copying::to_standard_output(&arguments.copy, sources, report);
    }
    copying::run(&arguments.copy, sources, target, report);
}
