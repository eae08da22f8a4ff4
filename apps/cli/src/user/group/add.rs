//! `smbeam user group add`: adds a group.

use auth::UserFile;

use super::arguments::GroupArguments;

/// Runs the command. Creates a missing file.
pub(super) fn run(arguments: &GroupArguments) -> anyhow::Result<()> {
    let GroupArguments { file, group } = arguments;
    Ok(UserFile::load(&file.file)?.add_group(group)?)
}
