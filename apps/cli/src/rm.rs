//! `smbeam rm`: removes files and directories.

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

/// Arguments of `smbeam rm`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Files or directories. `*` and `?` in the last component are wildcards.
    #[arg(required = true, value_name = "URL", value_parser = crate::location::url)]
    urls: Vec<Url>,
    /// Remove directories with their contents.
    #[arg(short, long)]
    recursive: bool,
    /// Ignore files that do not exist.
    #[arg(short, long)]
    force: bool,
    /// Number of files to remove at the same time.
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
            if arguments.connect.log.names_files() {
                output::line(&format_args!("removed {path}"));
            }
        },
    );
}

/// Reports a failure. With `--force`, a missing file is not a failure.
fn take(arguments: &Arguments, report: &Report, failure: &Failure) {
    if !(arguments.force && failure.exit == Exit::NotFound) {
        report.failed(failure);
    }
}

fn found(connector: &Connector, url: &Url) -> Outcome<Vec<ExpandedPath>> {
    match url.path.is_empty() {
        true => Err(Failure::usage(
            url,
            "a share cannot be removed, only the files and directories in it",
        )),
        false => connector.expand(url, Detail::Brief),
    }
}

fn tree_of(arguments: &Arguments, found: ExpandedPath) -> Outcome<(FilePath, FileInfo)> {
    let info = found.own_info()?;
    if info.is_directory() && !arguments.recursive {
        let reason = "is a directory: give -r to remove it with its contents";
        return Err(Failure::usage(found.path, reason));
    }
    Ok((found.path, info))
}
