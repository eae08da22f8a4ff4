//! `smbeam user rm`: removes a user.

use super::arguments::UserArguments;

/// Runs the command.
pub(super) fn run(user: &UserArguments) -> anyhow::Result<()> {
    Ok(user.file.load()?.remove(&user.name)?)
}
