//! `smbeam cat`: writes files to standard output.

use std::io::{self, Write as _};

use clap::Args;
use smbeam_client::{OpenOptions, Wait as _};

use crate::connect::{ConnectArguments, Connector};
use crate::failure::Outcome;
use crate::file_path::RemotePath;
use crate::location::Url;
use crate::output;
use crate::report::Report;

/// Arguments of `smbeam cat`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The files, in the order of the output.
    #[arg(required = true, value_name = "URL", value_parser = crate::location::url)]
    urls: Vec<Url>,
    #[command(flatten)]
    connect: ConnectArguments,
}

/// Runs `smbeam cat`.
pub(crate) fn run(arguments: &Arguments, report: &Report) {
    let connector = Connector::new(&arguments.connect);
    for url in &arguments.urls {
        report.take(connector.remote_path(url).and_then(|remote| cat(&remote)));
        if report.is_over() {
            break;
        }
    }
}

/// Writes one file to standard output. A closed pipe is not a failure.
pub(crate) fn cat(remote: &RemotePath) -> Outcome {
    let file = remote
        .share
        .open(&remote.path, &OpenOptions::new().read(true))
        .wait()
        .map_err(remote.failed())?;
    let mut reader = file.reader();
    let mut out = io::stdout().lock();
    match io::copy(&mut reader, &mut out).and_then(|_| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            output::check(Err(error));
            Ok(())
        }
        Err(error) => Err(remote.stream_failure(error)),
    }
}
