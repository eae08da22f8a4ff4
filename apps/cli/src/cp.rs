//! `smbeam cp`: from anywhere to anywhere, as long as a server has a part in it.

use clap::Args;

use crate::copying::{self, CopyArguments};
use crate::failure::Failure;
use crate::location::Location;
use crate::report::Report;

/// What to copy.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Files or directories, and where they go: a directory, or a new name for one. Within a server, the
    /// server copies by itself.
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
