//! `smbeam acl`: shows and changes owners, groups and access control lists.

mod change;
mod copy;
mod edit;
mod find;
mod get;
mod names;
mod readable;
mod rights;
mod set;
pub(crate) mod walk;

use clap::Subcommand;

use crate::report::Report;

/// Subcommands of `smbeam acl`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show owner, group and access control list of files.
    Get(get::Arguments),
    /// Change owner, group or access control list of files.
    Set(Box<set::Arguments>),
    /// Copy owner, group and access control list from one tree to another.
    Copy(copy::Arguments),
    /// Find files by the users and rights in their access control lists.
    Find(find::Arguments),
}

/// Runs `smbeam acl`.
pub(crate) fn run(command: &Command, report: &Report) {
    match command {
        Command::Get(arguments) => get::run(arguments, report),
        Command::Set(arguments) => set::run(arguments, report),
        Command::Copy(arguments) => copy::run(arguments, report),
        Command::Find(arguments) => find::run(arguments, report),
    }
}
