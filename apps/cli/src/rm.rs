//! `smbeam rm`: remove files and trees.

use clap::Args;

use crate::connect::{ConnectArguments, Connector};
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::file_path::{Detail, ExpandedPath, FileInfo, FilePath};
use crate::interrupt::Interrupt;
use crate::location::Url;
use crate::output;
use crate::report::Report;
use crate::transfer::remove_trees;

/// What to remove.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Files or directories; `*` and `?` in the last component stand for any characters, or one.
    #[arg(required = true, value_name = "URL")]
    urls: Vec<Url>,
    /// Directories as well, with all that is in them.
    #[arg(short, long)]
    recursive: bool,
    /// What is not there is no failure.
    #[arg(short, long)]
    force: bool,
    /// Name what is removed.
    #[arg(short, long)]
    verbose: bool,
    /// Files at once.
    #[arg(short, long, default_value = "16", value_name = "N", value_parser = 1..=256)]
    jobs: i64,
    #[command(flatten)]
    connect: ConnectArguments,
}

/// Runs `smbeam rm`.
pub(crate) fn run(arguments: &Arguments, report: &Report) {
    let connector = Connector::new(&arguments.connect);
    let mut trees = Vec::new();
    for url in &arguments.urls {
        let mut add = |tree| match tree {
            Ok(tree) => trees.push(tree),
            Err(failure) => take(arguments, report, &failure),
        };
        match found(&connector, url) {
            Ok(found) => found
                .into_iter()
                .for_each(|found| add(tree_of(arguments, found))),
            Err(failure) => add(Err(failure)),
        }
        if report.is_over() {
            return;
        }
    }
    let interrupt = match Interrupt::catch() {
        Ok(interrupt) => interrupt,
        Err(error) => return report.failed(&Failure::local("signals", &error)),
    };
    remove_trees(
        trees,
        arguments.jobs as usize,
        report,
        &interrupt,
        &|path| {
            if arguments.verbose {
                output::line(&format_args!("removed {path}"));
            }
        },
    );
}

/// Reports a failure, unless it is none.
fn take(arguments: &Arguments, report: &Report, failure: &Failure) {
    if !(arguments.force && failure.exit == Exit::NotFound) {
        report.failed(failure);
    }
}

fn found(connector: &Connector, url: &Url) -> Outcome<Vec<ExpandedPath>> {
    match url.path.is_empty() {
        true => Err(Failure::usage(url, "a share itself cannot be removed")),
        false => connector.expand(url, Detail::Brief),
    }
}

fn tree_of(arguments: &Arguments, found: ExpandedPath) -> Outcome<(FilePath, FileInfo)> {
    let info = found.own_info()?;
    if info.is_directory() && !arguments.recursive {
        let reason = "a directory: give -r to remove all in it";
        return Err(Failure::usage(found.path, reason));
    }
    Ok((found.path, info))
}
