//! `smbeam shares`: lists the shares of a server.

use clap::Args;
use serde::Serialize;
use smbeam_client::Wait as _;
use wire::rpc::srvsvc::ShareType;

use crate::client_failure::failure_of;
use crate::connect::{ConnectArguments, Connector};
use crate::describe::json;
use crate::failure::Outcome;
use crate::format;
use crate::location::Url;
use crate::output;
use crate::report::Report;

/// Arguments of `smbeam shares`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The server. A share in the URL is ignored.
    #[arg(
        value_name = "URL",
        value_parser = crate::location::url,
        help = "The server: smb://[user@]host"
    )]
    url: Url,
    /// Include administrative shares and pipes.
    #[arg(short, long)]
    all: bool,
    /// Print one object of JSON per line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connect: ConnectArguments,
}

/// A share in JSON.
#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    kind: &'static str,
    comment: &'a str,
}

/// Runs `smbeam shares`.
pub(crate) fn run(arguments: &Arguments, report: &Report) {
    report.take(shares(arguments));
}

fn shares(arguments: &Arguments) -> Outcome {
    let session = Connector::new(&arguments.connect).session(&arguments.url)?;
    let mut shares = session
        .shares()
        .wait()
        .map_err(|error| failure_of(&arguments.url, &error))?;
    shares.sort_by(|one, other| one.name.cmp(&other.name));
    for share in shares {
        if is_hidden(share.kind) && !arguments.all {
            continue;
        }
        let row = Row {
            name: &share.name,
            kind: kind_name(share.kind),
            comment: &share.comment,
        };
        match arguments.json {
            true => output::line(&json(&row)),
            false => output::line(&text(&row)),
        }
    }
    Ok(())
}

pub(crate) fn is_hidden(kind: ShareType) -> bool {
    kind.contains(ShareType::SPECIAL) || kind.kind() == ShareType::IPC
}

fn kind_name(kind: ShareType) -> &'static str {
    match kind.kind() {
        ShareType::DISKTREE => "disk",
        ShareType::PRINTQ => "printer",
        ShareType::DEVICE => "device",
        ShareType::IPC => "pipes",
        _ => "other",
    }
}

fn text(row: &Row<'_>) -> String {
    let (name, comment) = (format::name(row.name), format::name(row.comment));
    format!("{name:<24}  {:<8}  {comment}", row.kind)
        .trim_end()
        .to_owned()
}
