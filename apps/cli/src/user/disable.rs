//! `smbeam user disable`: disables a user.

use super::arguments::UserArguments;

/// Runs the command.
pub(super) fn run(user: &UserArguments) -> anyhow::Result<()> {
    Ok(user.file.load()?.set_disabled(&user.name, true)?)
}
