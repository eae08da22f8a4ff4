//! `smbeam watch`: prints the changes in a directory.

use clap::Args;
use serde::Serialize;
use smbeam_client::{Change, FileAction, Wait as _, Watch};

use crate::connect::{ConnectArguments, Connector};
use crate::describe::json;
use crate::failure::Outcome;
use crate::file_path::RemotePath;
use crate::location::{Url, encode};
use crate::output;
use crate::report::Report;

/// Arguments of `smbeam watch`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The directory.
    #[arg(value_name = "URL", value_parser = crate::location::url)]
    url: Url,
    /// Watch subdirectories as well.
    #[arg(short, long)]
    recursive: bool,
    /// End after this many changes.
    #[arg(short, long, value_name = "N")]
    count: Option<u64>,
    /// Print one object of JSON per line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connect: ConnectArguments,
}

/// A change in JSON.
#[derive(Serialize)]
struct Row<'a> {
    action: &'a str,
    path: Option<&'a str>,
}

/// Runs `smbeam watch`.
pub(crate) fn run(arguments: &Arguments, report: &Report) {
    let connector = Connector::new(&arguments.connect);
    let watched = connector
        .remote_path(&arguments.url)
        .and_then(|remote| watch(arguments, &remote));
    report.take(watched);
}

fn watch(arguments: &Arguments, remote: &RemotePath) -> Outcome {
    let mut watch = remote
        .share
        .watch(&remote.path, arguments.recursive, Watch::USUAL)
        .wait()
        .map_err(remote.failed())?;
    let mut left = arguments.count.unwrap_or(u64::MAX);
    while left > 0 {
        for change in watch.next().wait().map_err(remote.failed())? {
            print_row(arguments, &change);
            left -= 1;
            if left == 0 {
                break;
            }
        }
    }
    Ok(())
}

fn print_row(arguments: &Arguments, change: &Change) {
    let (action, path) = words(change);
    if arguments.json {
        return output::line(&json(&Row { action, path }));
    }
    match path {
        Some(path) => output::line(&format_args!("{action:<9} {}", encode(path))),
        None => output::line(&format_args!(
            "{action:<9} (changes were lost: list the directory again)"
        )),
    }
}

/// The word for the change, and the path.
fn words(change: &Change) -> (&'static str, Option<&str>) {
    match change {
        Change::Overflow => ("overflow", None),
        Change::Name { action, path } => (word(*action), Some(path)),
    }
}

fn word(action: FileAction) -> &'static str {
    match action {
        FileAction::ADDED => "added",
        FileAction::REMOVED => "removed",
        FileAction::MODIFIED => "modified",
        FileAction::RENAMED_OLD_NAME => "renamed",
        FileAction::RENAMED_NEW_NAME => "to",
        _ => "changed",
    }
}
