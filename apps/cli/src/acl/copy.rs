//! `smbeam acl copy`: copies owner, group and access control list from one tree to another.

use std::sync::Mutex;

use clap::Args;

use super::walk;
use crate::connect::{ConnectArguments, Connector};
use crate::descriptor;
use crate::failure::Outcome;
use crate::file_path::RemotePath;
use crate::location::Url;
use crate::mutex::lock;
use crate::output::Lines;
use crate::report::Report;

/// Arguments of `smbeam acl copy`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The file or directory to copy from.
    #[arg(value_name = "SOURCE", value_parser = crate::location::url)]
    source: Url,
    /// The file or directory to copy to. Everything that the source has in it must exist.
    #[arg(value_name = "TARGET", value_parser = crate::location::url)]
    target: Url,
    /// Copy everything in directories as well.
    #[arg(short, long)]
    recursive: bool,
    /// Change nothing. Print each path with its new descriptor in SDDL.
    #[arg(short = 'n', long)]
    dry_run: bool,
    #[command(flatten)]
    connect: ConnectArguments,
}

/// Runs `smbeam acl copy`.
pub(super) fn run(arguments: &Arguments, report: &Report) {
    let connector = Connector::new(&arguments.connect);
    if let Err(failure) = copy(arguments, &connector, report) {
        report.failed(&failure);
    }
}

fn copy(arguments: &Arguments, connector: &Connector, report: &Report) -> Outcome {
    let source = connector.remote_path(&arguments.source)?;
    let target = connector.remote_path(&arguments.target)?;
    descriptor::check(&target)?;
    let lines = Mutex::new(Lines::new());
    walk::tree(&source, arguments.recursive, report, &|path, _| {
        let below = path.path[source.path.len()..].trim_start_matches('/');
        let target = match below {
            "" => target.clone(),
            below => target.child(below),
        };
        copy_one(arguments, path, &target, &lines)
    })
}

fn copy_one(
    arguments: &Arguments,
    source: &RemotePath,
    target: &RemotePath,
    lines: &Mutex<Lines>,
) -> Outcome {
    let found = descriptor::of(source, descriptor::PARTS)?;
    if arguments.dry_run {
        let sddl = found
            .to_sddl()
            .unwrap_or_else(|| "(no text form)".to_owned());
        lock(lines).line(&format_args!("{target}\t{sddl}"));
        return Ok(());
    }
    descriptor::set(target, descriptor::PARTS, &found)
}
