//! `smbeam user app-password ls`: lists additional passwords of users.

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail};
use auth::{Account, AppPassword, AppPasswordRights, FileTime};
use clap::Args;
use serde_json::json;
use smbeam_server::config::Config;
use smbeam_server::{AppPasswordUses, app_password_uses};

use crate::format::utc_time;
use crate::output::Lines;
use crate::user::arguments::FileArgument;

/// Arguments of `smbeam user app-password ls`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    file: FileArgument,
    /// The user. Default: all users.
    name: Option<String>,
    /// State directory of the server, which has the times of the last logins. Default: that of a
    /// server of the same user.
    #[arg(long, value_name = "DIRECTORY")]
    state_directory: Option<PathBuf>,
    /// Print one JSON object for each password.
    #[arg(long)]
    json: bool,
}

impl Arguments {
    /// Runs the command.
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let users = self.file.load()?.users();
        let directory = self.state_directory.clone();
        let directory = directory.unwrap_or_else(|| Config::default().state_directory());
        let uses = app_password_uses(&directory);
        let uses = uses.with_context(|| format!("state directory {}", directory.display()))?;
        let accounts: Vec<&Account> = match &self.name {
            Some(name) => match users.find(name) {
                Some(account) => vec![account],
                None => bail!("user {name} does not exist"),
            },
            None => users.iter().collect(),
        };
        let mut lines = Lines::new();
        for account in accounts {
            for password in &account.app_passwords {
                self.print(&mut lines, account, password, &uses);
            }
        }
        Ok(())
    }

    fn print(
        &self,
        lines: &mut Lines,
        account: &Account,
        password: &AppPassword,
        uses: &AppPasswordUses,
    ) {
        let AppPasswordRights {
            name,
            shares,
            read_only,
        } = &password.rights;
        let used = uses.get(&(account.name.clone(), name.clone())).copied();
        let expires = password.expires.map(FileTime::to_unix);
        let has_expired = password.has_expired(FileTime::from(SystemTime::now()));
        if self.json {
            lines.line(&json!({
                "user": account.name,
                "name": name,
                "expires": expires.map(shown),
                "has_expired": has_expired,
                "shares": shares,
                "read_only": read_only,
                "last_use": used.map(shown),
            }));
            return;
        }
        let mut parts = Vec::new();
        match expires {
            Some(time) if has_expired => parts.push(format!("expired {}", shown(time))),
            Some(time) => parts.push(format!("expires {}", shown(time))),
            None => {}
        }
        if !shares.is_empty() {
            parts.push(format!("shares {}", shares.join(", ")));
        }
        if *read_only {
            parts.push("read-only".to_owned());
        }
        parts.push(match used {
            Some(time) => format!("last use {}", shown(time)),
            None => "not used".to_owned(),
        });
        lines.line(&format_args!(
            "{}: {name} ({})",
            account.name,
            parts.join("; ")
        ));
    }
}

/// A time in seconds since 1970 in UTC.
fn shown(seconds: i64) -> String {
    let since = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
    UNIX_EPOCH
        .checked_add(since)
        .map_or_else(|| "-".to_owned(), utc_time)
}
