//! `smbeam session`: lists and ends the sessions of a server on this machine.

mod end;
mod list;
mod selection;

use clap::Subcommand;

use crate::report::Report;

/// Subcommands of `smbeam session`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the sessions of a server on this machine.
    #[command(alias = "ls")]
    List(list::Arguments),
    /// End sessions, and close their files.
    ///
    /// Most clients log in again at once, with the password that they remember. To keep a user out,
    /// disable the account with `smbeam user disable`. Data that a client has not written yet is
    /// lost.
    End(end::Arguments),
}

/// Runs `smbeam session`.
pub(crate) fn run(command: &Command, report: &Report) {
    match command {
        Command::List(arguments) => report.take(arguments.run()),
        Command::End(arguments) => arguments.run(report),
    }
}
