//! `smbeam user enable`: enables a disabled user.

use super::arguments::UserArguments;

/// Runs the command.
pub(super) fn run(user: &UserArguments) -> anyhow::Result<()> {
    Ok(user.file.load()?.set_disabled(&user.name, false)?)
}
