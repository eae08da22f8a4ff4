//! `smbeam user group rm`: removes a group.

use super::arguments::GroupArguments;

/// Runs the command.
pub(super) fn run(arguments: &GroupArguments) -> anyhow::Result<()> {
    let GroupArguments { file, group } = arguments;
    Ok(file.load()?.remove_group(group)?)
}
