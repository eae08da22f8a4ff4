//! `smbeam reload`: makes a server on this machine read its configuration again.

use clap::Args;
use smbeam_server::control::{ReloadReport, Request};

use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::local_server::{self, ServerArguments};
use crate::output::{self, Lines};
use crate::report::Report;

/// Arguments of `smbeam reload`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    server: ServerArguments,
    /// Print one object of JSON.
    #[arg(long)]
    json: bool,
}

/// Runs `smbeam reload`.
pub(crate) fn run(arguments: &Arguments, report: &Report) {
    report.take(reload(arguments));
}

fn reload(arguments: &Arguments) -> Outcome {
    let server = arguments.server.find()?;
    let subject = server.socket.display();
    let result = server.request(&Request::Reload {})?;
    let result = result.map_err(|failure| {
        if arguments.json {
            output::line(&crate::describe::json(&failure));
        }
        local_server::refused(&subject, failure)
    })?;
    let report: ReloadReport = serde_json::from_value(result)
        .map_err(|error| Failure::new(Exit::Lost, &subject, error))?;
    match arguments.json {
        true => output::line(&crate::describe::json(&report)),
        false => print(&report),
    }
    Ok(())
}

fn print(report: &ReloadReport) {
    let ReloadReport {
        applied,
        restart,
        warnings,
    } = report;
    let mut lines = Lines::new();
    if applied.is_empty() {
        lines.line(&"no change; users and certificates are read again");
    }
    for change in applied {
        lines.line(&format_args!("applied: {change}"));
    }
    for key in restart {
        lines.line(&format_args!("needs a restart: {key}"));
    }
    lines.flush();
    for warning in warnings {
        output::note(&format_args!("warning: {warning}"));
    }
}
