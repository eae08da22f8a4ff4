//! `smbeam df`: the free space of shares, and of disks that are mounted below their roots.

use clap::Args;
use serde::Serialize;
use smbeam_client::Wait as _;

use crate::connect::{ConnectArguments, Connector};
use crate::describe::json;
use crate::failure::Outcome;
use crate::format::SizeArguments;
use crate::location::Url;
use crate::output;
use crate::report::Report;

/// Arguments of `smbeam df`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Shares, or directories in shares: the space of the disk that holds the directory.
    #[arg(required = true, value_name = "URL", value_parser = crate::location::url)]
    urls: Vec<Url>,
    #[command(flatten)]
    sizes: SizeArguments,
    /// Print one object of JSON per line.
    #[arg(long, conflicts_with = "human")]
    json: bool,
    #[command(flatten)]
    connect: ConnectArguments,
}

/// The space of a volume in JSON, in bytes.
#[derive(Serialize)]
struct Row {
    share: String,
    url: String,
    total: u64,
    used: u64,
    available: u64,
    free: u64,
    filesystem: String,
    label: String,
}

/// Runs `smbeam df`.
pub(crate) fn run(arguments: &Arguments, report: &Report) {
    let connector = Connector::new(&arguments.connect);
    if !arguments.json {
        let total = arguments.sizes.heading();
        let (used, available) = ("used", "available");
        output::line(&format_args!(
            "{total:>18} {used:>18} {available:>18} use%  URL"
        ));
    }
    for url in &arguments.urls {
        report.take(df(arguments, &connector, url));
        if report.is_over() {
            break;
        }
    }
}

fn df(arguments: &Arguments, connector: &Connector, url: &Url) -> Outcome {
    let remote = connector.remote_path(url)?;
    let volume = remote.share.volume_of(&remote.path).wait();
    let volume = volume.map_err(remote.failed())?;
    let row = Row {
        share: remote.root.to_string(),
        url: remote.to_string(),
        total: volume.total,
        used: volume.total.saturating_sub(volume.free),
        available: volume.available,
        free: volume.free,
        filesystem: volume.filesystem,
        label: volume.label,
    };
    match arguments.json {
        true => output::line(&json(&row)),
        false => output::line(&text(&row, &arguments.sizes)),
    }
    Ok(())
}

fn text(row: &Row, sizes: &SizeArguments) -> String {
    let percent = (u128::from(row.used) * 100).div_ceil(u128::from(row.total.max(1)));
    format!(
        "{:>18} {:>18} {:>18} {percent:>3}%  {}",
        sizes.shown(row.total),
        sizes.shown(row.used),
        sizes.shown(row.available),
        row.url
    )
}
