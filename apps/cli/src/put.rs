//! `smbeam put`: uploads files to a server.

use clap::Args;

use crate::copying::{self, CopyArguments};
use crate::failure::Failure;
use crate::location::Location;
use crate::report::Report;

/// Arguments of `smbeam put`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Local files or directories, followed by the target on the server: a directory, or a new name
    /// for a single source. `-` as the only source is standard input; its target is a file name.
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
        let reason = "already on a server: put uploads local files; cp copies between servers";
        return report.failed(&Failure::usage(remote, reason));
    }
    if !is_remote(&target) {
        let reason = "not on a server: the last argument must be smb://[user@]host/share/path";
        return report.failed(&Failure::usage(target, reason));
    }
    match sources {
        [input] if input.is_stream() => {
            copying::from_standard_input(&arguments.copy, target, report);
        }
        _ => copying::run(&arguments.copy, sources, target, report),
    }
}
