//! `smbeam du`: the disk usage of directories.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use clap::Args;
use serde::Serialize;

use crate::connect::{ConnectArguments, Connector};
use crate::describe::json;
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::file_path::{Detail, FilePath};
use crate::format::SizeArguments;
use crate::location::Url;
use crate::output;
use crate::report::Report;
use crate::transfer::pool::{self, Queue};

/// Directories that are listed at the same time.
const WORKERS: usize = 16;
/// Maximum depth of directories. A hostile server could claim an endless tree.
const MAX_DEPTH: u32 = 512;

/// Arguments of `smbeam du`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Directories or files.
    #[arg(required = true, value_name = "URL", value_parser = crate::location::url)]
    urls: Vec<Url>,
    /// Print only the total of each argument, not of its subdirectories.
    #[arg(short, long)]
    summarize: bool,
    /// Print totals of directories down to this depth only.
    #[arg(short = 'L', long, value_name = "N", conflicts_with = "summarize")]
    level: Option<u32>,
    /// Count the allocated bytes on disk instead of the file sizes.
    #[arg(long)]
    allocated: bool,
    #[command(flatten)]
    sizes: SizeArguments,
    /// Print one object of JSON per line.
    #[arg(long, conflicts_with = "human")]
    json: bool,
    #[command(flatten)]
    connect: ConnectArguments,
}

/// The sum of a directory. It is complete when the last reference is dropped.
struct Directory {
    path: FilePath,
    bytes: AtomicU64,
    files: AtomicU64,
    depth: u32,
    parent: Option<Arc<Directory>>,
}

/// The total of a directory in JSON.
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
    let path = connector.file_path(url)?;
    let info = path.info(true)?;
    let root = Arc::new(Directory {
        path,
        bytes: AtomicU64::new(0),
        files: AtomicU64::new(0),
        depth: 0,
        parent: None,
    });
    if !info.is_directory() {
        let bytes = if arguments.allocated {
            info.allocation
        } else {
            info.size
        };
        print_row(arguments, &root.path, bytes, 1);
        return Ok(());
    }
    pool::run(
        WORKERS,
        vec![root],
        &|directory, queue: &Queue<Arc<Directory>>| {
            if report.is_over() {
                return;
            }
            if let Err(failure) = measure(arguments, &directory, queue, report) {
                report.failed(&failure);
            }
            entry_done(arguments, directory);
        },
    );
    Ok(())
}

fn measure(
    arguments: &Arguments,
    directory: &Arc<Directory>,
    queue: &Queue<Arc<Directory>>,
    report: &Report,
) -> Outcome {
    if directory.depth > MAX_DEPTH {
        let reason = "directories are nested too deeply";
        return Err(Failure::new(Exit::Failed, &directory.path, reason));
    }
    directory.path.list(Detail::Brief, &mut |entry| {
        let measured = entry.and_then(|entry| {
            if !entry.info.is_directory() {
                let info = &entry.info;
                let bytes = if arguments.allocated {
                    info.allocation
                } else {
                    info.size
                };
                directory.bytes.fetch_add(bytes, Ordering::Relaxed);
                directory.files.fetch_add(1, Ordering::Relaxed);
                return Ok(());
            }
            let path = directory.path.listed(&entry.name);
            queue.push_directory(Arc::new(Directory {
                path: path.map_err(|error| Failure::name(&directory.path, error))?,
                bytes: AtomicU64::new(0),
                files: AtomicU64::new(0),
                depth: directory.depth + 1,
                parent: Some(Arc::clone(directory)),
            }));
            Ok(())
        });
        if let Err(failure) = measured {
            report.failed(&failure);
        }
        !report.is_over()
    })
}

/// Releases a listed directory. A directory without unfinished subdirectories prints its total and
/// adds it to its parent.
fn entry_done(arguments: &Arguments, directory: Arc<Directory>) {
    let mut next = Some(directory);
    while let Some(directory) = next.and_then(Arc::into_inner) {
        let (bytes, files) = (directory.bytes.into_inner(), directory.files.into_inner());
        let shown = match arguments.summarize {
            true => 0,
            false => arguments.level.unwrap_or(u32::MAX),
        };
        if directory.depth <= shown {
            print_row(arguments, &directory.path, bytes, files);
        }
        if let Some(parent) = &directory.parent {
            parent.bytes.fetch_add(bytes, Ordering::Relaxed);
            parent.files.fetch_add(files, Ordering::Relaxed);
        }
        next = directory.parent;
    }
}

fn print_row(arguments: &Arguments, path: &FilePath, bytes: u64, files: u64) {
    if arguments.json {
        let path = path.to_string();
        return output::line(&json(&Row { path, bytes, files }));
    }
    let size = arguments.sizes.shown(bytes);
    output::line(&format_args!("{size:>16}  {path}"));
}
