//! `smbeam touch`: creates files, or sets their times.

use std::time::SystemTime;

use clap::Args;
use smbeam_client::{Changes, OpenOptions, Wait as _};

use crate::connect::{ConnectArguments, Connector};
use crate::failure::Outcome;
use crate::file_path::{FilePath, RemotePath};
use crate::format::parse_time;
use crate::location::Url;
use crate::report::Report;

/// Arguments of `smbeam touch`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Files or directories. A missing file is created.
    #[arg(required = true, value_name = "URL", value_parser = crate::location::url)]
    urls: Vec<Url>,
    /// Set this time instead of now: 2026-01-31, 2026-01-31T12:00:00 (add Z for UTC), @seconds
    /// since 1970, or `2h ago`.
    #[arg(short, long, value_name = "TIME", value_parser = parse_time)]
    date: Option<SystemTime>,
    /// Do not create files.
    #[arg(short = 'c', long)]
    no_create: bool,
    #[command(flatten)]
    connect: ConnectArguments,
}

/// Runs `smbeam touch`.
pub(crate) fn run(arguments: &Arguments, report: &Report) {
    let connector = Connector::new(&arguments.connect);
    for url in &arguments.urls {
        report.take(
            connector
                .remote_path(url)
                .and_then(|remote| touch(arguments, &remote)),
        );
        if report.is_over() {
            break;
        }
    }
}

fn touch(arguments: &Arguments, remote: &RemotePath) -> Outcome {
    if FilePath::Remote(remote.clone()).lookup(true)?.is_none() {
        if arguments.no_create {
            return Ok(());
        }
        let options = OpenOptions::new().write(true).create(true);
        let file = remote.share.open(&remote.path, &options).wait();
        let closed = file.map_err(remote.failed())?.close().wait();
        closed.map_err(remote.failed())?;
        if arguments.date.is_none() {
            return Ok(());
        }
    }
    let time = arguments.date.unwrap_or_else(SystemTime::now);
    let changes = Changes::default().accessed(Some(time)).written(Some(time));
    let changed = remote.share.set_metadata(&remote.path, &changes).wait();
    changed.map_err(remote.failed())
}
