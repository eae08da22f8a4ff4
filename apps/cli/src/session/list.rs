//! `smbeam session list`.

use clap::Args;
use smbeam_server::status::SessionStatus;

use super::selection::Selection;
use crate::failure::Outcome;
use crate::local_server::ServerArguments;
use crate::output::{self, Lines};
use crate::status::table as status;
use crate::table;

/// Arguments of `smbeam session list`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    server: ServerArguments,
    #[command(flatten)]
    selection: Selection,
    /// Print one JSON object for each session.
    #[arg(long)]
    json: bool,
}

impl Arguments {
    /// Runs the command.
    pub(super) fn run(&self) -> Outcome {
        let server = self.server.find()?;
        let found = self.selection.find(&server.status)?;
        let mut lines = Lines::new();
        if self.json {
            for (session, _) in found {
                lines.line(&crate::describe::json(session));
            }
        } else if found.is_empty() {
            lines.line(&"no sessions");
        } else {
            let heads = [
                "SESSION",
                "USER",
                "CLIENT",
                "DIALECT",
                "PROTECTION",
                "SINCE",
                "SHARES",
                "FILES",
            ];
            let rows = found.iter().map(|(session, peers)| row(session, peers));
            for line in table::lines(&heads, rows.collect()) {
                lines.line(&line);
            }
        }
        lines.flush();
        let left_out = server.status.left_out.sessions;
        if left_out > 0 {
            output::note(&format_args!("not listed: {left_out} further sessions"));
        }
        Ok(())
    }
}

fn row(session: &SessionStatus, peers: &[&str]) -> Vec<String> {
    let peers: Vec<String> = peers.iter().map(ToString::to_string).collect();
    vec![
        session.id.clone(),
        status::user(&session.user),
        status::listed(&peers),
        session.dialect.clone(),
        status::session_protection(session),
        status::time(session.since),
        status::shares(session),
        session.files.to_string(),
    ]
}
