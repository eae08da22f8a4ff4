//! `smbeam user ls`: lists the users.

use auth::UserFile;
use clap::Args;
use serde_json::json;

use super::arguments::FileArgument;
use crate::output::Lines;

/// Arguments of `smbeam user ls`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    file: FileArgument,
    /// Print one JSON object for each user.
    #[arg(long)]
    json: bool,
}

impl Arguments {
    /// Runs the command.
    pub(super) fn run(&self) -> anyhow::Result<()> {
        list(&self.file.load()?, self.json);
        Ok(())
    }
}

fn list(users: &UserFile, json: bool) {
    let mut lines = Lines::new();
    for user in users.list() {
        if json {
            lines.line(&json!({
                "name": user.name,
                "unix": user.unix,
                "is_disabled": user.is_disabled,
            }));
            continue;
        }
        let unix = user
            .unix
            .as_deref()
            .map(|unix| format!(" (unix: {unix})"))
            .unwrap_or_default();
        let disabled = if user.is_disabled { " (disabled)" } else { "" };
        lines.line(&format_args!("{}{unix}{disabled}", user.name));
    }
}
