//! `smbeam open`: lists and closes the open files of a server on this machine.

mod close;
mod list;
mod selection;

use clap::Subcommand;

use crate::report::Report;

/// Subcommands of `smbeam open`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the open files, directories and pipes of a server on this machine.
    #[command(alias = "ls")]
    List(list::Arguments),
    /// Close open files, directories and pipes for their clients.
    ///
    /// The client receives an error at its next request, and byte-range locks and caching rights
    /// end. Data that the client has not written yet is lost.
    Close(close::Arguments),
}

/// Runs `smbeam open`.
pub(crate) fn run(command: &Command, report: &Report) {
    match command {
        Command::List(arguments) => report.take(arguments.run()),
        Command::Close(arguments) => arguments.run(report),
    }
}
