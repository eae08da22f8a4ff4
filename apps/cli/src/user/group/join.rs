//! `smbeam user group join`: makes users members of a group.

use super::arguments::{GroupArguments, MemberArguments};

/// Runs the command.
pub(super) fn run(arguments: &MemberArguments) -> anyhow::Result<()> {
    let MemberArguments { group, users } = arguments;
    let GroupArguments { file, group } = group;
    Ok(file.load()?.add_members(group, users)?)
}
