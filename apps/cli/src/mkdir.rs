//! `smbeam mkdir`: creates directories.

use clap::Args;
use smbeam_client::Wait as _;

use crate::connect::{ConnectArguments, Connector};
use crate::failure::Outcome;
use crate::file_path::FilePath;
use crate::location::Url;
use crate::report::Report;

/// Arguments of `smbeam mkdir`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The new directories.
    #[arg(required = true, value_name = "URL", value_parser = crate::location::url)]
    urls: Vec<Url>,
    /// Create missing parents as well, and accept directories that exist already.
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
    let remote = connector.remote_path(url)?;
    if parents {
        return FilePath::Remote(remote).create_directories();
    }
    let made = remote.share.create_dir(&remote.path).wait();
    made.map_err(remote.failed())
}
