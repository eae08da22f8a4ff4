//! `smbeam du`: how large folders are.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use clap::Args;
use serde::Serialize;

use crate::connect::{ConnectArguments, Connector};
use crate::describe::json;
use crate::exit::{Exit, Failure, Outcome, Report};
use crate::format::SizeArguments;
use crate::location::Url;
use crate::output;
use crate::place::{Detail, Place};
use crate::transfer::pool::{self, Queue};

/// Folders that are listed at once.
const WORKERS: usize = 16;
/// Folders within folders. A server can pretend to have any number.
const MAX_DEPTH: u32 = 512;

/// What to measure.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Folders or files.
    #[arg(required = true, value_name = "URL")]
    urls: Vec<Url>,
    /// The sums only, not those of the folders below.
    #[arg(short, long)]
    summarize: bool,
    /// Sums of so many levels only.
    #[arg(short = 'L', long, value_name = "N", conflicts_with = "summarize")]
    level: Option<u32>,
    /// Bytes on disk instead of the sizes of files.
    #[arg(long)]
    allocated: bool,
    #[command(flatten)]
    sizes: SizeArguments,
    /// An object of JSON in each line.
    #[arg(long, conflicts_with = "human")]
    json: bool,
    #[command(flatten)]
    connect: ConnectArguments,
}

/// A folder that is being measured. Its sum is whole when nobody holds it any more.
struct Folder {
    place: Place,
    bytes: AtomicU64,
    files: AtomicU64,
    depth: u32,
    within: Option<Arc<Folder>>,
}

/// A sum in JSON.
#[derive(Serialize)]
struct Row {
    path: String,
    bytes: u64,
    files: u64,
}

/// Runs `smbeam du`.
pub(crate) fn run(arguments: &Arguments, report: &Report) {
    let connector = Connector::new(&arguments.connect);
    for url in &arguments.urls {
        report.take(du(arguments, &connector, url, report));
        if report.is_over() {
            break;
        }
    }
}

fn du(arguments: &Arguments, connector: &Connector, url: &Url, report: &Report) -> Outcome {
    let place = connector.place_of(url)?;
    let facts = place.facts(true)?;
    let root = Arc::new(Folder {
        place,
        bytes: AtomicU64::new(0),
        files: AtomicU64::new(0),
        depth: 0,
        within: None,
    });
    if !facts.is_folder() {
        let bytes = if arguments.allocated {
            facts.allocation
        } else {
            facts.size
        };
        tell(arguments, &root.place, bytes, 1);
        return Ok(());
    }
    pool::run(
        WORKERS,
        vec![root],
        &|folder, queue: &Queue<Arc<Folder>>| {
            if report.is_over() {
                return;
            }
            if let Err(failure) = measure(arguments, &folder, queue, report) {
                report.failed(&failure);
            }
            leave(arguments, folder);
        },
    );
    Ok(())
}

fn measure(
    arguments: &Arguments,
    folder: &Arc<Folder>,
    queue: &Queue<Arc<Folder>>,
    report: &Report,
) -> Outcome {
    if folder.depth > MAX_DEPTH {
        let reason = "too many folders within folders";
        return Err(Failure::new(Exit::Failed, &folder.place, reason));
    }
    folder.place.list(Detail::Brief, &mut |entry| {
        let measured = entry.and_then(|entry| {
            if !entry.facts.is_folder() {
                let facts = &entry.facts;
                let bytes = if arguments.allocated {
                    facts.allocation
                } else {
                    facts.size
                };
                folder.bytes.fetch_add(bytes, Ordering::Relaxed);
                folder.files.fetch_add(1, Ordering::Relaxed);
                return Ok(());
            }
            let place = folder.place.listed(&entry.name);
            queue.push_folder(Arc::new(Folder {
                place: place.map_err(|error| Failure::name(&folder.place, error))?,
                bytes: AtomicU64::new(0),
                files: AtomicU64::new(0),
                depth: folder.depth + 1,
                within: Some(Arc::clone(folder)),
            }));
            Ok(())
        });
        if let Err(failure) = measured {
            report.failed(&failure);
        }
        !report.is_over()
    })
}

/// A folder is listed. If all below it are, its sum is told and added to that of its own folder.
fn leave(arguments: &Arguments, folder: Arc<Folder>) {
    let mut next = Some(folder);
    while let Some(folder) = next.and_then(Arc::into_inner) {
        let (bytes, files) = (folder.bytes.into_inner(), folder.files.into_inner());
        let shown = match arguments.summarize {
            true => 0,
            false => arguments.level.unwrap_or(u32::MAX),
        };
        if folder.depth <= shown {
            tell(arguments, &folder.place, bytes, files);
        }
        if let Some(within) = &folder.within {
            within.bytes.fetch_add(bytes, Ordering::Relaxed);
            within.files.fetch_add(files, Ordering::Relaxed);
        }
        next = folder.within;
    }
}

fn tell(arguments: &Arguments, place: &Place, bytes: u64, files: u64) {
    if arguments.json {
        let path = place.to_string();
        return output::line(&json(&Row { path, bytes, files }));
    }
    let size = arguments.sizes.shown(bytes);
    output::line(&format_args!("{size:>16}  {place}"));
}
