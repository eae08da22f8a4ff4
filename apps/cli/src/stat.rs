//! `smbeam stat`: what is known of a file.

use clap::Args;

use crate::connect::{ConnectArguments, Connector};
use crate::describe::Described;
use crate::exit::{Outcome, Report};
use crate::format;
use crate::location::Url;
use crate::output;
use crate::place::{Facts, Place};

/// What to look at.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Files or folders.
    #[arg(required = true, value_name = "URL")]
    urls: Vec<Url>,
    /// An object of JSON in each line.
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
    let place = connector.place_of(url)?;
    let facts = place.facts(true)?;
    match json {
        true => output::line(&Described::new(&place.to_string(), &facts).line()),
        false => output::line(&text(&place, &facts)),
    }
    Ok(())
}

fn text(place: &Place, facts: &Facts) -> String {
    let attributes = format::attribute_names(facts.attributes).join(", ");
    let mut rows = vec![
        ("path", place.to_string()),
        ("kind", facts.kind.name().to_owned()),
        (
            "size",
            format!("{} ({})", facts.size, format::size(facts.size)),
        ),
        ("on disk", facts.allocation.to_string()),
        ("attributes", attributes),
    ];
    if let Some(created) = facts.created {
        rows.push(("created", format::local_time(created)));
    }
    rows.push(("accessed", format::local_time(facts.accessed)));
    rows.push(("written", format::local_time(facts.written)));
    rows.push(("changed", format::local_time(facts.changed)));
    if let Some(file_id) = facts.file_id {
        rows.push(("file id", format!("{file_id:#x}")));
    }
    rows.into_iter()
        .map(|(key, value)| format!("{key:<12}{value}"))
        .collect::<Vec<_>>()
        .join("\n")
}
