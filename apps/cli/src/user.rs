//! `smbeam user`: manages the file of users.

mod add;
mod app_password;
mod arguments;
mod disable;
mod enable;
mod group;
mod import;
mod ls;
mod passwd;
mod rm;
mod rules;

use clap::Subcommand;

use arguments::UserArguments;

/// Subcommands of `smbeam user`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Add a user.
    Add(add::Arguments),
    /// Change the password of a user.
    ///
    /// The sessions of the user end.
    Passwd(passwd::Arguments),
    /// Refuse logins of a user, and end the sessions of the user.
    Disable(UserArguments),
    /// Allow logins of a disabled user again.
    Enable(UserArguments),
    /// Remove a user, and end the sessions of the user.
    Rm(UserArguments),
    /// List the users.
    Ls(ls::Arguments),
    /// Manage groups of users.
    #[command(subcommand)]
    Group(group::Command),
    /// Manage additional passwords of users, such as one for each device.
    #[command(subcommand)]
    AppPassword(app_password::Command),
    /// Show or change the rules for new passwords.
    Rules(rules::Arguments),
    /// Add the users of Samba with their passwords.
    Import(import::Arguments),
}

/// Runs `smbeam user`.
pub(crate) fn run(command: &Command) -> anyhow::Result<()> {
    match command {
        Command::Add(arguments) => arguments.run(),
        Command::Passwd(arguments) => arguments.run(),
        Command::Disable(user) => disable::run(user),
        Command::Enable(user) => enable::run(user),
        Command::Rm(user) => rm::run(user),
        Command::Ls(arguments) => arguments.run(),
        Command::Group(command) => group::run(command),
        Command::AppPassword(command) => app_password::run(command),
        Command::Rules(arguments) => arguments.run(),
        Command::Import(arguments) => arguments.run(),
    }
}
