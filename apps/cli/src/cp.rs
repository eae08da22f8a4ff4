//! `smbeam cp`: copies files from, to and between servers.

use clap::Args;

use crate::copying::{self, CopyArguments};
use crate::failure::Failure;
use crate::location::Location;
use crate::report::Report;

/// Arguments of `smbeam cp`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Files or directories, followed by the target: a directory, or a new name for a single
    /// source. Copies within a server do not pass through this machine.
    #[arg(required = true, num_args = 2.., value_name = "SOURCE... TARGET")]
    locations: Vec<Location>,
    #[command(flatten)]
    copy: CopyArguments,
}

/// Runs `smbeam cp`.
pub(crate) fn run(arguments: &Arguments, report: &Report) {
    let Some((target, sources)) = arguments.locations.split_last() else {
        return;
    };
    let is_local = |location: &&Location| matches!(location, Location::Local(_));
    if is_local(&target)
        && let Some(local) = sources.iter().find(is_local)
    {
        let reason = "neither source nor target is on a server";
        return report.failed(&Failure::usage(local, reason));
    }
    copying::run(&arguments.copy, sources, target, report);
}
