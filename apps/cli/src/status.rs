//! `smbeam status`: shows the state of a server on this machine.

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use clap::Args;

use crate::failure::Outcome;
use crate::local_server::ServerArguments;
use crate::output::{self, Lines};
use crate::report::Report;

pub(crate) mod table;

/// Arguments of `smbeam status`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    server: ServerArguments,
    /// Print one object of JSON.
    #[arg(long)]
    json: bool,
    /// Show the state again and again, each time after this many seconds, until Ctrl-C.
    #[arg(
        long,
        value_name = "SECONDS",
        num_args = 0..=1,
        default_missing_value = "2",
        require_equals = true,
        value_parser = clap::value_parser!(u64).range(1..=3600)
    )]
    watch: Option<u64>,
}

/// Runs `smbeam status`.
pub(crate) fn run(arguments: &Arguments, report: &Report) {
    let Some(seconds) = arguments.watch else {
        return report.take(status(arguments, ""));
    };
    // Each state replaces the one before it on a terminal. ECMA-48: the cursor goes to the upper
    // left, and the rest of the screen is erased.
    let before = match arguments.json || !io::stdout().is_terminal() {
        true => "",
        false => "\x1b[H\x1b[2J",
    };
    loop {
        let outcome = status(arguments, before);
        let has_failed = outcome.is_err();
        report.take(outcome);
        if has_failed {
            return;
        }
        std::thread::sleep(Duration::from_secs(seconds));
    }
}

/// Prints the state, behind the text `before`.
fn status(arguments: &Arguments, before: &str) -> Outcome {
    let status = arguments.server.find()?.status;
    if arguments.json {
        output::line(&crate::describe::json(&status));
        return Ok(());
    }
    let mut lines = Lines::new();
    let mut before = before;
    for line in table::text(&status) {
        lines.line(&format_args!("{before}{line}"));
        before = "";
    }
    Ok(())
}
