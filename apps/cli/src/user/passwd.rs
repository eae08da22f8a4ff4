//! `smbeam user passwd`: changes the password of a user.

use clap::Args;

use super::arguments::{PasswordArgument, UserArguments};

/// Arguments of `smbeam user passwd`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    user: UserArguments,
    #[command(flatten)]
    password: PasswordArgument,
}

impl Arguments {
    /// Runs the command.
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let mut users = self.user.file.load()?;
        users.set_password(&self.user.name, &self.password.read()?)?;
        Ok(())
    }
}
