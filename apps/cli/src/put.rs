//! `smbeam put`: from this machine to a server.

use clap::Args;

use crate::copying::{self, CopyArguments};
use crate::failure::Failure;
use crate::location::Location;
use crate::report::Report;

/// What to put.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Files or directories of this machine, and where on a server they go: a directory, or a new name
    /// for one. `-` is standard input, which goes alone and into a file.
    #[arg(required = true, num_args = 2.., value_name = "PATH... URL")]
    locations: Vec<Location>,
    #[command(flatten)]
    copy: CopyArguments,
}

/// Runs `smbeam put`.
pub(crate) fn run(arguments: &Arguments, report: &Report) {
    let Some((target, sources)) = arguments.locations.split_last() else {
        return;
    };
    let is_remote = |location: &&Location| matches!(location, Location::Remote(_));
    if let Some(remote) = sources.iter().find(is_remote) {
        let reason = "on a server: put takes files of this machine, cp those of servers, too";
        return report.failed(&Failure::usage(remote, reason));
    }
    if !is_remote(&target) {
        let reason = "not on a server: want smb://[user@]host/share/path at the end";
        return report.failed(&Failure::usage(target, reason));
    }
    match sources {
        [input] if input.is_stream() => {
            copying::from_standard_input(&arguments.copy, target, report);
        }
        _ => copying::run(&arguments.copy, sources, target, report),
    }
}
