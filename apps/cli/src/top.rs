//! `smbeam top`: the rates of a server on this machine, live.

mod rates;
mod screen;
mod terminal;

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use clap::Args;
use smbeam_server::activity::Activity;
use smbeam_server::control::Request;

use crate::failure::{Failure, Outcome};
use crate::local_server::{LocalServer, ServerArguments};
use crate::output;
use crate::report::Report;

/// Arguments of `smbeam top`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    server: ServerArguments,
    /// Time between two updates in seconds.
    #[arg(
        long,
        short = 'n',
        value_name = "SECONDS",
        default_value_t = 1.0,
        value_parser = interval
    )]
    interval: f64,
    /// Measure one interval, print its rates as one object of JSON, and end.
    #[arg(long)]
    json: bool,
}

/// Runs `smbeam top`.
pub(crate) fn run(arguments: &Arguments, report: &Report) {
    report.take(top(arguments));
}

fn top(arguments: &Arguments) -> Outcome {
    let server = arguments.server.find()?;
    let interval = Duration::from_secs_f64(arguments.interval);
    if arguments.json {
        let before = activity(&server)?;
        std::thread::sleep(interval);
        let rates = rates::Rates::between(&before, &activity(&server)?);
        output::line(&crate::describe::json(&rates));
        return Ok(());
    }
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        let why = "smbeam top needs a terminal: use --json without one";
        return Err(Failure::usage("standard output", why));
    }
    terminal::show(&server, interval)
}

/// The counters of the server now.
fn activity(server: &LocalServer) -> Outcome<Activity> {
    server.result(&server.socket.display(), &Request::Activity {})
}

/// Parses an interval: 0.1 to 3600 seconds.
pub(crate) fn interval(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    match (0.1..=3600.0).contains(&seconds) {
        true => Ok(seconds),
        false => Err("use 0.1 to 3600 seconds".to_owned()),
    }
}
