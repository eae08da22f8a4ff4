//! `smbeam get`: downloads files from a server.

use std::path::PathBuf;

use clap::Args;

use crate::copying::{self, CopyArguments};
use crate::failure::Failure;
use crate::location::Location;
use crate::report::Report;

/// Arguments of `smbeam get`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Files or directories on servers, followed by the local target: a directory, or a new name
    /// for a single source. The default is the current directory; `-` is standard output. `*` and
    /// `?` in the last component of a URL are wildcards.
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
        let reason = "not on a server: get downloads files, put uploads them";
        return report.failed(&Failure::usage(local, reason));
    }
    if target.is_stream() {
        return copying::to_standard_output(&arguments.copy, sources, report);
    }
    copying::run(&arguments.copy, sources, target, report);
}
