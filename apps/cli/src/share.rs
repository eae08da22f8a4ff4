//! `smbeam share`: lists, disables and enables the shares of a server on this machine.

mod list;
mod state;

use clap::Subcommand;

use crate::report::Report;

/// Subcommands of `smbeam share`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the shares of a server on this machine.
    #[command(alias = "ls")]
    List(list::Arguments),
    /// Disable shares for a time.
    ///
    /// To clients, a disabled share does not exist: their connections to it end, and their files in
    /// it are closed. The share stays disabled until it is enabled or the server starts again.
    Disable(state::Arguments),
    /// Enable disabled shares again.
    Enable(state::Arguments),
}

/// Runs `smbeam share`.
pub(crate) fn run(command: &Command, report: &Report) {
    match command {
        Command::List(arguments) => report.take(arguments.run()),
        Command::Disable(arguments) => arguments.set_enabled(false, report),
        Command::Enable(arguments) => arguments.set_enabled(true, report),
    }
}
