//! `smbeam chmod`: changes the permissions of files.

use clap::Args;

use crate::acl::walk;
use crate::connect::ConnectArguments;
use crate::location::Url;
use crate::report::Report;
use crate::unix::{ModeChange, Ways, change_mode};

/// Arguments of `smbeam chmod`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The mode: octal such as 0640, or changes such as u+x,go-w.
    #[arg(value_name = "MODE", allow_hyphen_values = true)]
    mode: ModeChange,
    /// Files or directories.
    #[arg(required = true, value_name = "URL", value_parser = crate::location::url)]
    urls: Vec<Url>,
    /// Change everything in directories as well.
    #[arg(short = 'R', long)]
    recursive: bool,
    #[command(flatten)]
    connect: ConnectArguments,
}

/// Runs `smbeam chmod`.
pub(crate) fn run(arguments: &Arguments, report: &Report) {
    let ways = Ways::default();
    let Arguments { urls, connect, .. } = arguments;
    walk::trees(urls, connect, arguments.recursive, report, &|path, info| {
        let (_, way) = change_mode(path, info, &arguments.mode)?;
        ways.add(way);
        Ok(())
    });
    ways.report(report, "mode");
}
