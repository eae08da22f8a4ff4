//! `smbeam mkdir`: new folders.

use clap::Args;
use smbeam_client::Wait as _;

use crate::connect::{ConnectArguments, Connector};
use crate::exit::{Outcome, Report};
use crate::location::Url;
use crate::place::Place;

/// What to make.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The folders.
    #[arg(required = true, value_name = "URL")]
    urls: Vec<Url>,
    /// Make the folders that they are in as well; one that is there already is no failure.
    #[arg(short, long)]
    parents: bool,
    #[command(flatten)]
    connect: ConnectArguments,
}

/// Runs `smbeam mkdir`.
pub(crate) fn run(arguments: &Arguments, report: &Report) {
    let connector = Connector::new(&arguments.connect);
    for url in &arguments.urls {
        report.take(mkdir(&connector, url, arguments.parents));
        if report.is_over() {
            break;
        }
    }
}

fn mkdir(connector: &Connector, url: &Url, parents: bool) -> Outcome {
    let remote = connector.remote(url)?;
    if parents {
        return Place::Remote(remote).make_folders();
    }
    let made = remote.share.create_dir(&remote.path).wait();
    made.map_err(remote.failed())
}
