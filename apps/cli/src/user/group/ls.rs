//! `smbeam user group ls`: lists the groups.

use clap::Args;
use serde_json::json;

use crate::output::Lines;
use crate::user::arguments::FileArgument;

/// Arguments of `smbeam user group ls`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    file: FileArgument,
    /// Print one JSON object for each group.
    #[arg(long)]
    json: bool,
}

impl Arguments {
    /// Runs the command.
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let users = self.file.load()?.users();
        let mut lines = Lines::new();
        for group in users.groups() {
            let members: Vec<&str> = group.members().collect();
            match self.json {
                true => lines.line(&json!({ "name": group.name, "members": members })),
                false => lines.line(&format_args!("{}: {}", group.name, members.join(", "))),
            }
        }
        Ok(())
    }
}
