//! `smbeam user disable`: disables a user.

use clap::Args;

use super::arguments::FileArgument;

/// Arguments of `smbeam user disable`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    file: FileArgument,
    /// The user.
    name: String,
}

impl Arguments {
    /// Runs the command.
    pub(super) fn run(&self) -> anyhow::Result<()> {
        Ok(self.file.load()?.set_disabled(&self.name, true)?)
    }
}
