//! `smbeam user add`: adds a user.

use auth::UserFile;
use clap::Args;

use super::arguments::{FileArgument, PasswordArgument};
use crate::output::note;

/// Arguments of `smbeam user add`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    file: FileArgument,
    /// Name for the login.
    name: String,
    /// Unix account that determines the permissions of the user. Default: the account with the
    /// same name.
    #[arg(long)]
    unix: Option<String>,
    #[command(flatten)]
    password: PasswordArgument,
}

impl Arguments {
    /// Runs the command. Creates a missing file.
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let Self {
            file,
            name,
            unix,
            password,
        } = self;
        let mut users = UserFile::load(&file.file)?;
        users.add(name, &password.read()?, unix.as_deref())?;
        if let Some(warning) = smbeam_server::unix_account_warning(name, unix.as_deref()) {
            note(&format_args!("smbeam: user: warning: {warning}"));
        }
        Ok(())
    }
}
