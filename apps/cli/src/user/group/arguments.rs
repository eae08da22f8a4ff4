//! Arguments that several commands of `smbeam user group` share.

use clap::Args;

use crate::user::arguments::FileArgument;

/// A group in the file of users.
#[derive(Debug, Args)]
pub(crate) struct GroupArguments {
    #[command(flatten)]
    pub(super) file: FileArgument,
    /// The group.
    pub(super) group: String,
}

/// A group in the file of users, and some users.
#[derive(Debug, Args)]
pub(crate) struct MemberArguments {
    #[command(flatten)]
    pub(super) group: GroupArguments,
    /// The users.
    #[arg(required = true)]
    pub(super) users: Vec<String>,
}
