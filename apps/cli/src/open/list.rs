//! `smbeam open list`.

use clap::Args;

use super::selection::Selection;
use crate::failure::Outcome;
use crate::local_server::ServerArguments;
use crate::output::{self, Lines};
use crate::status::table;

/// Arguments of `smbeam open list`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    server: ServerArguments,
    #[command(flatten)]
    selection: Selection,
    /// Print one JSON object for each open file.
    #[arg(long)]
    json: bool,
}

impl Arguments {
    /// Runs the command.
    pub(super) fn run(&self) -> Outcome {
        let server = self.server.find()?;
        let found = self.selection.find(&server.status);
        let mut lines = Lines::new();
        if self.json {
            for file in found.files {
                lines.line(&crate::describe::json(file));
            }
            for file in found.disconnected {
                lines.line(&crate::describe::json(file));
            }
        } else {
            let mut text = table::files(found.files);
            if !found.disconnected.is_empty() {
                text.extend(table::disconnected_files(found.disconnected));
            }
            // The first line is empty.
            for line in text.iter().skip(1) {
                lines.line(line);
            }
        }
        lines.flush();
        let left_out = server.status.left_out.files;
        if left_out > 0 {
            output::note(&format_args!("not listed: {left_out} further open files"));
        }
        Ok(())
    }
}
