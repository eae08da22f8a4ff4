//! `smbeam user app-password`: manages additional passwords of users.

mod add;
mod ls;
mod rm;

use clap::Subcommand;

/// Subcommands of `smbeam user app-password`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Generate an additional password of a user, and print it once.
    ///
    /// The user name of a login with it is that of the user. The password may expire and have fewer
    /// rights than the user.
    Add(add::Arguments),
    /// Remove an additional password of a user, and end the sessions with it.
    Rm(rm::Arguments),
    /// List the additional passwords, with their rights, expiry and last use.
    Ls(ls::Arguments),
}

/// Runs `smbeam user app-password`.
pub(super) fn run(command: &Command) -> anyhow::Result<()> {
    match command {
        Command::Add(arguments) => arguments.run(),
        Command::Rm(arguments) => arguments.run(),
        Command::Ls(arguments) => arguments.run(),
    }
}
