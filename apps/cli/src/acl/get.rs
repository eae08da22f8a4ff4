//! `smbeam acl get`: shows owner, group and access control list.

use std::sync::Mutex;

use clap::Args;
use smbeam_client::SecurityInformation;

use super::{readable, walk};
use crate::connect::ConnectArguments;
use crate::descriptor;
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::file_path::RemotePath;
use crate::location::Url;
use crate::mutex::lock;
use crate::output::Lines;
use crate::report::Report;

/// Arguments of `smbeam acl get`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Files or directories.
    #[arg(required = true, value_name = "URL", value_parser = crate::location::url)]
    urls: Vec<Url>,
    /// Print the descriptor in SDDL, the text form of Windows, after the path and a tab.
    #[arg(long, conflicts_with = "json")]
    sddl: bool,
    /// Print one object of JSON per line.
    #[arg(long)]
    json: bool,
    /// Show the list for auditing (SACL) as well. It needs a privilege on the server.
    #[arg(long)]
    sacl: bool,
    /// Show everything in directories as well.
    #[arg(short, long)]
    recursive: bool,
    #[command(flatten)]
    connect: ConnectArguments,
}

/// Runs `smbeam acl get`.
pub(super) fn run(arguments: &Arguments, report: &Report) {
    let lines = Mutex::new(Lines::new());
    let Arguments { urls, connect, .. } = arguments;
    walk::trees(urls, connect, arguments.recursive, report, &|path, _| {
        show(arguments, path, &lines)
    });
}

fn show(arguments: &Arguments, path: &RemotePath, lines: &Mutex<Lines>) -> Outcome {
    let parts = match arguments.sacl {
        true => descriptor::PARTS | SecurityInformation::SACL,
        false => descriptor::PARTS,
    };
    let found = descriptor::of(path, parts)?;
    let name = path.to_string();
    let text = match (arguments.sddl, arguments.json) {
        (true, _) => {
            let sddl = found.to_sddl().ok_or_else(|| {
                let reason = "an entry of the list has no text form: use --json";
                Failure::new(Exit::Failed, path, reason)
            })?;
            format!("{name}\t{sddl}")
        }
        (false, true) => readable::json_line(&name, &found),
        (false, false) => readable::text(&name, &found),
    };
    lock(lines).line(&text);
    Ok(())
}
