//! `smbeam rmdir`: remove folders that are empty.

use clap::Args;

use crate::connect::{ConnectArguments, Connector};
use crate::exit::{Exit, Failure, Outcome, Report};
use crate::location::Url;
use crate::place::{Kind, Place};

/// What to remove.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The folders.
    #[arg(required = true, value_name = "URL")]
    urls: Vec<Url>,
    #[command(flatten)]
    connect: ConnectArguments,
}

/// Runs `smbeam rmdir`.
pub(crate) fn run(arguments: &Arguments, report: &Report) {
    let connector = Connector::new(&arguments.connect);
    for url in &arguments.urls {
        report.take(rmdir(&connector, url));
        if report.is_over() {
            break;
        }
    }
}

fn rmdir(connector: &Connector, url: &Url) -> Outcome {
    let place: Place = connector.place_of(url)?;
    if url.path.is_empty() {
        return Err(Failure::usage(url, "a share itself cannot be removed"));
    }
    if !place.facts(true)?.is_folder() {
        return Err(Failure::new(Exit::Exists, place, "not a folder"));
    }
    place.remove(Kind::Folder)
}
