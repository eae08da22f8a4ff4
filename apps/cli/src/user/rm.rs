//! `smbeam user rm`: removes a user.

use clap::Args;

use super::arguments::FileArgument;

/// Arguments of `smbeam user rm`.
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
        Ok(self.file.load()?.remove(&self.name)?)
    }
}
