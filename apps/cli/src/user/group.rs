//! `smbeam user group`: manages groups of users.

mod add;
mod arguments;
mod join;
mod leave;
mod ls;
mod rm;

use clap::Subcommand;

use arguments::{GroupArguments, MemberArguments};

/// Subcommands of `smbeam user group`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Add a group without members.
    ///
    /// The lists of users of shares name it as `@GROUP`. It hides a Unix group of the same name.
    Add(GroupArguments),
    /// Remove a group, and end the sessions of its members.
    Rm(GroupArguments),
    /// Make users members of a group.
    ///
    /// Sessions of the users have the group when they connect to a share again.
    Join(MemberArguments),
    /// Remove users from a group, and end their sessions.
    Leave(MemberArguments),
    /// List the groups with their members.
    Ls(ls::Arguments),
}

/// Runs `smbeam user group`.
pub(super) fn run(command: &Command) -> anyhow::Result<()> {
    match command {
        Command::Add(arguments) => add::run(arguments),
        Command::Rm(arguments) => rm::run(arguments),
        Command::Join(arguments) => join::run(arguments),
        Command::Leave(arguments) => leave::run(arguments),
        Command::Ls(arguments) => arguments.run(),
    }
}
