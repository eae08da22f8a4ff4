//! `smbeam readlink`: prints the targets of symbolic links.

use clap::Args;
use smbeam_client::Wait as _;

use crate::connect::{ConnectArguments, Connector};
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::file_path::RemotePath;
use crate::format;
use crate::location::Url;
use crate::output;
use crate::report::Report;

/// Arguments of `smbeam readlink`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Symbolic links.
    #[arg(required = true, value_name = "URL", value_parser = crate::location::url)]
    urls: Vec<Url>,
    #[command(flatten)]
    connect: ConnectArguments,
}

/// Runs `smbeam readlink`.
pub(crate) fn run(arguments: &Arguments, report: &Report) {
    let connector = Connector::new(&arguments.connect);
    for url in &arguments.urls {
        let target = connector.remote_path(url).and_then(|path| target_of(&path));
        report.take(target.map(|target| output::line(&format::name(&target))));
        if report.is_over() {
            break;
        }
    }
}

fn target_of(path: &RemotePath) -> Outcome<String> {
    let point = path.share.reparse_point(&path.path).wait();
    let point = point.map_err(path.failed())?;
    point
        .and_then(|point| point.symlink_target())
        .ok_or_else(|| Failure::new(Exit::Failed, path, "not a symbolic link"))
}
