//! `smbeam session end`.

use clap::Args;
use smbeam_server::control::Request;

use super::selection::Selection;
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::local_server::{LocalServer, ServerArguments};
use crate::output;
use crate::report::Report;

/// Arguments of `smbeam session end`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    server: ServerArguments,
    /// Identifiers of sessions, as `smbeam session list` prints them.
    #[arg(value_name = "SESSION", conflicts_with_all = ["user", "client", "share"])]
    sessions: Vec<String>,
    #[command(flatten)]
    selection: Selection,
}

impl Arguments {
    /// Runs the command.
    pub(super) fn run(&self, report: &Report) {
        let (server, sessions) = match self.selected() {
            Ok(selected) => selected,
            Err(failure) => return report.failed(&failure),
        };
        for id in sessions {
            report.take(end(&server, &id));
        }
    }

    /// The server, and the identifiers of the sessions to end.
    fn selected(&self) -> Outcome<(LocalServer, Vec<String>)> {
        if self.sessions.is_empty() && self.selection.is_empty() {
            let why = "name sessions, or select them with --user, --client or --share";
            return Err(Failure::usage("sessions", why));
        }
        let server = self.server.find()?;
        if !self.sessions.is_empty() {
            return Ok((server, self.sessions.clone()));
        }
        let found = self.selection.find(&server.status)?.into_iter();
        let found: Vec<String> = found.map(|(session, _)| session.id.clone()).collect();
        match found.is_empty() {
            true => Err(Failure::new(
                Exit::NotFound,
                "sessions",
                "no session matches",
            )),
            false => Ok((server, found)),
        }
    }
}

fn end(server: &LocalServer, id: &str) -> Outcome {
    let request = Request::EndSession { id: id.to_owned() };
    server.result::<()>(&format_args!("session {id}"), &request)?;
    let known = server.status.sessions.iter();
    let user = known
        .filter(|session| session.id == id && !session.user.is_empty())
        .map(|session| format!(" of {}", crate::format::name(&session.user)))
        .next();
    output::line(&format_args!(
        "ended session {id}{}",
        user.unwrap_or_default()
    ));
    Ok(())
}
