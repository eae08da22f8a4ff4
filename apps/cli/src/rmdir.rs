//! `smbeam rmdir`: removes empty directories.

use clap::Args;

use crate::connect::{ConnectArguments, Connector};
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::file_path::{FilePath, Kind};
use crate::location::Url;
use crate::report::Report;

/// Arguments of `smbeam rmdir`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The directories.
    #[arg(required = true, value_name = "URL", value_parser = crate::location::url)]
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
    let path: FilePath = connector.file_path(url)?;
    if url.path.is_empty() {
        return Err(Failure::usage(
            url,
            "a share cannot be removed, only the directories in it",
        ));
    }
    if !path.info(true)?.is_directory() {
        return Err(Failure::new(Exit::Exists, path, "not a directory"));
    }
    path.remove(Kind::Directory)
}
