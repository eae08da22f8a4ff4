//! `smbeam user app-password add`: generates an additional password of a user.

use std::time::SystemTime;

use anyhow::bail;
use auth::{AppPassword, AppPasswordRights, FileTime, NtHash, random_password};
use clap::Args;

use crate::format::parse_expiry;
use crate::output;
use crate::user::arguments::UserArguments;

/// Arguments of `smbeam user app-password add`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    user: UserArguments,
    /// Name of the password, such as that of a device.
    password_name: String,
    /// Time from which the password does not count, such as `90d`, `1y` or `2030-01-31`. Default:
    /// it does not expire.
    #[arg(long, value_name = "TIME", value_parser = parse_expiry)]
    expires: Option<SystemTime>,
    /// Admit to this share only; may be repeated. Default: all shares of the user.
    #[arg(long = "share", value_name = "SHARE")]
    shares: Vec<String>,
    /// Admit to reading only.
    #[arg(long)]
    read_only: bool,
}

impl Arguments {
    /// Runs the command.
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let Self {
            user,
            password_name,
            expires,
            shares,
            read_only,
        } = self;
        if expires.is_some_and(|expires| expires <= SystemTime::now()) {
            bail!("--expires: the time has passed");
        }
        let password = random_password();
        let app_password = AppPassword {
            rights: AppPasswordRights {
                name: password_name.clone(),
                shares: shares.clone(),
                read_only: *read_only,
            },
            nt_hash: NtHash::from_password(&password),
            expires: expires.map(|time| FileTime::from_unix(FileTime::from(time).to_unix())),
        };
        let mut users = user.file.load()?;
        users.add_app_password(&user.name, app_password)?;
        output::line(&*password);
        Ok(())
    }
}
