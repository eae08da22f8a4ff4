//! `smbeam user app-password rm`: removes an additional password of a user.

use clap::Args;

use crate::user::arguments::UserArguments;

/// Arguments of `smbeam user app-password rm`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    user: UserArguments,
    /// Name of the password.
    password_name: String,
}

impl Arguments {
    /// Runs the command.
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let Self {
            user,
            password_name,
        } = self;
        let mut users = user.file.load()?;
        Ok(users.remove_app_password(&user.name, password_name)?)
    }
}
