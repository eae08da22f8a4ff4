//! `smbeam open close`.

use clap::Args;
use smbeam_server::control::Request;

use super::selection::{Selected, Selection};
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::local_server::{LocalServer, ServerArguments};
use crate::output;
use crate::report::Report;

/// Arguments of `smbeam open close`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    server: ServerArguments,
    /// Identifiers of open files, as `smbeam open list` prints them.
    #[arg(value_name = "OPEN", conflicts_with_all = ["user", "share", "path"])]
    opens: Vec<String>,
    #[command(flatten)]
    selection: Selection,
}

impl Arguments {
    /// Runs the command.
    pub(super) fn run(&self, report: &Report) {
        let (server, opens) = match self.selected() {
            Ok(selected) => selected,
            Err(failure) => return report.failed(&failure),
        };
        for id in opens {
            report.take(close(&server, &id));
        }
    }

    /// The server, and the identifiers of the opens to close.
    fn selected(&self) -> Outcome<(LocalServer, Vec<String>)> {
        if self.opens.is_empty() && self.selection.is_empty() {
            let why = "name open files, or select them with --user, --share or --path";
            return Err(Failure::usage("open files", why));
        }
        let server = self.server.find()?;
        if !self.opens.is_empty() {
            return Ok((server, self.opens.clone()));
        }
        let Selected {
            files,
            disconnected,
        } = self.selection.find(&server.status);
        let files = files.iter().map(|file| file.id.clone());
        let found: Vec<String> = files
            .chain(disconnected.iter().map(|file| file.id.clone()))
            .collect();
        match found.is_empty() {
            true => Err(Failure::new(
                Exit::NotFound,
                "open files",
                "no open file matches",
            )),
            false => Ok((server, found)),
        }
    }
}

fn close(server: &LocalServer, id: &str) -> Outcome {
    let request = Request::CloseOpen { id: id.to_owned() };
    server.result::<()>(&format_args!("open file {id}"), &request)?;
    output::line(&format_args!("closed {id}{}", place(server, id)));
    Ok(())
}

/// The share and the path of an open file, if they are known.
fn place(server: &LocalServer, id: &str) -> String {
    let status = &server.status;
    let files = status.files.iter();
    let files = files.map(|file| (&file.id, &file.share, &file.path));
    let disconnected = status.disconnected.iter();
    let disconnected = disconnected.map(|file| (&file.id, &file.share, &file.path));
    let mut known = files.chain(disconnected);
    let found = known.find(|(known, ..)| *known == id);
    found.map_or_else(String::new, |(_, share, path)| {
        let (share, path) = (crate::format::name(share), crate::format::name(path));
        format!(": {share}/{path}")
    })
}
