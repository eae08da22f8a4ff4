//! `smbeam stat`: shows the metadata of files.

use clap::Args;

use crate::connect::{ConnectArguments, Connector};
use crate::describe::FileDescription;
use crate::failure::Outcome;
use crate::file_path::{FileInfo, FilePath};
use crate::format;
use crate::location::Url;
use crate::output;
use crate::report::Report;

/// Arguments of `smbeam stat`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Files or directories.
    #[arg(required = true, value_name = "URL", value_parser = crate::location::url)]
    urls: Vec<Url>,
    /// Print one object of JSON per line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connect: ConnectArguments,
}

/// Runs `smbeam stat`.
pub(crate) fn run(arguments: &Arguments, report: &Report) {
    let connector = Connector::new(&arguments.connect);
    for url in &arguments.urls {
        report.take(stat(&connector, url, arguments.json));
        if report.is_over() {
            break;
        }
    }
}

fn stat(connector: &Connector, url: &Url, json: bool) -> Outcome {
    let path = connector.file_path(url)?;
    let info = path.info(true)?;
    match json {
        true => output::line(&FileDescription::new(&path.to_string(), &info).line()),
        false => output::line(&text(&path, &info)),
    }
    Ok(())
}

fn text(path: &FilePath, info: &FileInfo) -> String {
    let attributes = format::attribute_names(info.attributes).join(", ");
    let mut rows = vec![
        ("path", path.to_string()),
        ("kind", info.kind.name().to_owned()),
        ("size", exact_size(info.size)),
        ("on disk", exact_size(info.allocation)),
        ("attributes", attributes),
    ];
    if let Some(created) = info.created {
        rows.push(("created", format::local_time(created)));
    }
    rows.push(("accessed", format::local_time(info.accessed)));
    rows.push(("written", format::local_time(info.written)));
    rows.push(("changed", format::local_time(info.changed)));
    if let Some(file_id) = info.file_id {
        rows.push(("file id", format!("{file_id:#x}")));
    }
    rows.into_iter()
        .map(|(key, value)| format!("{key:<12}{value}"))
        .collect::<Vec<_>>()
        .join("\n")
}

/// The number of bytes, and the same in a larger unit if it is long.
fn exact_size(bytes: u64) -> String {
    match bytes < 1024 {
        true => format::size(bytes),
        false => format!("{bytes} B ({})", format::size(bytes)),
    }
}
