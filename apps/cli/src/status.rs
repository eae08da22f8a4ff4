//! `smbeam status`: shows the state of a server on this machine.

use clap::Args;

use crate::failure::Outcome;
use crate::local_server::ServerArguments;
use crate::output;
use crate::report::Report;

mod table;

/// Arguments of `smbeam status`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    server: ServerArguments,
    /// Print one object of JSON.
    #[arg(long)]
    json: bool,
}

/// Runs `smbeam status`.
pub(crate) fn run(arguments: &Arguments, report: &Report) {
    report.take(status(arguments));
}

fn status(arguments: &Arguments) -> Outcome {
    let status = arguments.server.find()?.status;
    match arguments.json {
        true => output::line(&crate::describe::json(&status)),
        false => table::print(&status),
    }
    Ok(())
}
