//! `smbeam share list`.

use clap::Args;
use smbeam_server::status::{ShareStatus, Status};

use crate::failure::Outcome;
use crate::format;
use crate::local_server::ServerArguments;
use crate::output::Lines;
use crate::table;

/// Arguments of `smbeam share list`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    server: ServerArguments,
    /// Print one JSON object for each share.
    #[arg(long)]
    json: bool,
}

impl Arguments {
    /// Runs the command.
    pub(super) fn run(&self) -> Outcome {
        let status = self.server.find()?.status;
        let shares = &status.server.shares;
        let mut lines = Lines::new();
        if self.json {
            for share in shares {
                lines.line(&crate::describe::json(share));
            }
        } else if shares.is_empty() {
            lines.line(&"no shares");
        } else {
            let heads = ["SHARE", "STATE", "SESSIONS", "FILES", "PATH"];
            let rows = shares.iter().map(|share| row(&status, share)).collect();
            for line in table::lines(&heads, rows) {
                lines.line(&line);
            }
        }
        Ok(())
    }
}

fn row(status: &Status, share: &ShareStatus) -> Vec<String> {
    let sessions = status.sessions.iter().filter(|session| {
        let mut trees = session.trees.iter();
        trees.any(|tree| tree.share == share.name)
    });
    let files = status.files.iter();
    let files = files.filter(|file| file.share == share.name);
    let state = match share.is_enabled {
        true => "enabled",
        false => "disabled",
    };
    vec![
        format::name(&share.name),
        state.to_owned(),
        sessions.count().to_string(),
        files.count().to_string(),
        format::name(&share.path.to_string_lossy()),
    ]
}
