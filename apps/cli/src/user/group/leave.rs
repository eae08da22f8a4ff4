//! `smbeam user group leave`: removes users from a group.

use super::arguments::{GroupArguments, MemberArguments};

/// Runs the command.
pub(super) fn run(arguments: &MemberArguments) -> anyhow::Result<()> {
    let MemberArguments { group, users } = arguments;
    let GroupArguments { file, group } = group;
    Ok(file.load()?.remove_members(group, users)?)
}
