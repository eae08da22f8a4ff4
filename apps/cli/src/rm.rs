//! `smbeam rm`: remove files and trees.

use clap::Args;

use crate::connect::{ConnectArguments, Connector};
use crate::exit::{Exit, Failure, Outcome, Report};
use crate::interrupt::Interrupt;
use crate::location::Url;
use crate::output;
use crate::place::{Detail, Facts, Place};
use crate::transfer::remove_trees;

/// What to remove.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Files or folders; `*` and `?` in the last component stand for any characters, or one.
    #[arg(required = true, value_name = "URL")]
    urls: Vec<Url>,
    /// Folders as well, with all that is in them.
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
        match found(arguments, &connector, url) {
            Ok(more) => trees.extend(more),
            Err(failure) if arguments.force && failure.exit == Exit::NotFound => {}
            Err(failure) => report.failed(&failure),
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
        &|place| {
            if arguments.verbose {
                output::line(&format_args!("removed {place}"));
            }
        },
    );
}

fn found(arguments: &Arguments, connector: &Connector, url: &Url) -> Outcome<Vec<(Place, Facts)>> {
    if url.path.is_empty() {
        return Err(Failure::usage(url, "a share itself cannot be removed"));
    }
    let mut trees = Vec::new();
    for found in connector.expand(url, Detail::Brief)? {
        let facts = found.facts()?;
        let place = found.place;
        if facts.is_folder() && !arguments.recursive {
            return Err(Failure::usage(
                place,
                "a folder: give -r to remove all in it",
            ));
        }
        trees.push((place, facts));
    }
    Ok(trees)
}
