//! `smbeam user passwd`: changes the password of a user.

use clap::Args;

use super::arguments::{FileArgument, PasswordArgument};

/// Arguments of `smbeam user passwd`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    file: FileArgument,
    /// The user.
    name: String,
    #[command(flatten)]
    password: PasswordArgument,
}

impl Arguments {
    /// Runs the command.
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let mut users = self.file.load()?;
        users.set_password(&self.name, &self.password.read()?)?;
        Ok(())
    }
}
