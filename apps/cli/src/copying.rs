//! The common part of get, put and cp: files and directories are copied into a directory, or one of
//! them gets a new name.

use std::collections::HashSet;
use std::path::Path;

use clap::Args;

use crate::cat::cat;
use crate::connect::{ConnectArguments, Connector};
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::file_path::{ExpandedPath, FilePath, Kind, RemotePath};
use crate::filter::Filter;
use crate::interrupt::Interrupt;
use crate::location::Location;
use crate::progress::{OutputArguments, Progress};
use crate::report::Report;
use crate::transfer::{Item, Transfer, TransferArguments};

/// Options of get, put and cp.
#[derive(Debug, Args)]
pub(crate) struct CopyArguments {
    /// Copy directories with their contents. --archive implies it.
    #[arg(short, long)]
    recursive: bool,
    /// Keep the times of files; between servers also their attributes.
    #[arg(short, long)]
    preserve: bool,
    #[command(flatten)]
    transfer: TransferArguments,
    #[command(flatten)]
    output: OutputArguments,
    #[command(flatten)]
    connect: ConnectArguments,
}

/// Copies `sources` to `target`.
pub(crate) fn run(
    arguments: &CopyArguments,
    sources: &[Location],
    target: &Location,
    report: &Report,
) {
    report.print_json(arguments.output.json());
    let connector = arguments.connector();
    let items = items(arguments, &connector, sources, target, report);
    let items = match items {
        Ok(items) if !report.is_over() => items,
        Ok(_) => return,
        Err(failure) => return report.failed(&failure),
    };
    let root = connector.resolve(target);
    transfer(arguments, &connector, root, report, |transfer| {
        let takes_part = |item: &Item| {
            let is_directory = item.info.is_directory();
            transfer
                .policy
                .filter
                .includes(&item.relative, is_directory)
        };
        transfer.run(items.into_iter().filter(takes_part).collect());
    });
}

/// Uploads standard input to a file on a server.
pub(crate) fn from_standard_input(arguments: &CopyArguments, target: &Location, report: &Report) {
    let connector = arguments.connector();
    match stream_target(arguments, &connector, target) {
        Ok(target) => {
            let root = Ok(FilePath::Remote(target.clone()));
            transfer(arguments, &connector, root, report, |transfer| {
                transfer.upload_standard_input(&target);
            });
        }
        Err(failure) => report.failed(&failure),
    }
}

/// Writes files on servers to standard output.
pub(crate) fn to_standard_output(arguments: &CopyArguments, sources: &[Location], report: &Report) {
    if let Err(failure) = arguments.check_stream("standard output") {
        return report.failed(&failure);
    }
    let connector = arguments.connector();
    for source in sources {
        let found = report.found(connector.expand_location(source));
        for found in found {
            match &found.path {
                FilePath::Remote(remote) if !report.is_over() => report.take(cat(remote)),
                FilePath::Remote(_) | FilePath::Local(_) => {}
            }
        }
        if report.is_over() {
            break;
        }
    }
}

impl CopyArguments {
    fn connector(&self) -> Connector {
        Connector::new(&self.connect)
            .local_names(self.transfer.names())
            .reconnect(self.transfer.reconnect())
    }

    /// Fails if an option is not possible with a stream, which has no times and can be read only
    /// once.
    fn check_stream(&self, name: &str) -> Outcome {
        let wants_more =
            self.preserve || self.transfer.archive() || self.transfer.reads_source_again();
        match wants_more {
            true => Err(Failure::usage(
                name,
                "is a stream: --preserve, --archive, --continue and --verify are not possible",
            )),
            false => Ok(()),
        }
    }
}

fn stream_target(
    arguments: &CopyArguments,
    connector: &Connector,
    target: &Location,
) -> Outcome<RemotePath> {
    arguments.check_stream("standard input")?;
    let FilePath::Remote(remote) = connector.resolve(target)? else {
        return Err(Failure::usage(
            target,
            "not on a server: expected smb://[user@]host/share/path",
        ));
    };
    let info = FilePath::Remote(remote.clone()).lookup(true)?;
    if target.names_a_directory() || info.is_some_and(|info| info.is_directory()) {
        let reason = "is a directory: add a file name for the data of standard input";
        return Err(Failure::usage(target, reason));
    }
    Ok(remote)
}

/// Runs `work` with a new transfer, and prints the summary.
fn transfer(
    arguments: &CopyArguments,
    connector: &Connector,
    root: Outcome<FilePath>,
    report: &Report,
    work: impl FnOnce(&Transfer<'_>),
) {
    let prepared = root.and_then(|root| {
        let options = &arguments.transfer;
        let policy = options.policy(arguments.preserve, &arguments.connect)?;
        Ok((policy, options.backup(connector, &root)?))
    });
    let (policy, backup) = match prepared {
        Ok(prepared) => prepared,
        Err(failure) => return report.failed(&failure),
    };
    let interrupt = match Interrupt::catch() {
        Ok(interrupt) => interrupt,
        Err(error) => return report.failed(&Failure::local("signals", &error)),
    };
    let progress = Progress::start(arguments.output, &arguments.connect.log, report);
    let transfer = Transfer::new(policy, report, &progress, &interrupt);
    work(&transfer.with_backup(backup));
    progress.finish(report);
}

fn items(
    arguments: &CopyArguments,
    connector: &Connector,
    sources: &[Location],
    target: &Location,
    report: &Report,
) -> Outcome<Vec<Item>> {
    let mut found = Vec::new();
    for source in sources {
        found.extend(report.found(connector.expand_location(source)));
        if report.is_over() {
            return Ok(Vec::new());
        }
    }
    let path = connector.resolve(target)?;
    let info = path.lookup(true)?;
    let is_directory = info.is_some_and(|info| info.is_directory());
    if !is_directory && (found.len() > 1 || target.names_a_directory()) {
        return Err(Failure::usage(path, "not a directory"));
    }
    let mut items = Vec::new();
    let mut taken = HashSet::new();
    for source in found {
        match item(arguments, source, &path, is_directory) {
            Ok(item) if !taken.insert(item.target.key()) => {
                report.failed(&duplicate_target(&item.source));
            }
            Ok(item) => items.push(item),
            Err(failure) => report.failed(&failure),
        }
    }
    Ok(items)
}

/// The failure of a source that has the same target as an earlier source. Both would be written at
/// once, or the second would replace the first.
pub(crate) fn duplicate_target(source: &impl ToString) -> Failure {
    let reason = "another source has the same target, and only the first one is used";
    Failure::new(Exit::Exists, source.to_string(), reason)
}

fn item(
    arguments: &CopyArguments,
    found: ExpandedPath,
    target: &FilePath,
    is_directory: bool,
) -> Outcome<Item> {
    let info = match arguments.transfer.links() {
        true => found.own_info()?,
        false => found.info()?,
    };
    let source = found.path;
    let is_recursive = arguments.recursive || arguments.transfer.archive();
    if info.is_directory() && !is_recursive {
        return Err(Failure::usage(
            source,
            "is a directory: give -r to copy it with its contents",
        ));
    }
    if info.kind == Kind::Other && !source.is_remote() {
        return Err(Failure::usage(source, "neither a file nor a directory"));
    }
    let target = match is_directory {
        true => {
            let name = source.name_or_share()?;
            let joined = target.join(&name);
            joined.map_err(|error| Failure::name(&source, error))?
        }
        false => target.clone(),
    };
    if info.is_directory() && is_within(&source, &target) {
        return Err(Failure::usage(
            target,
            "a directory cannot be copied into itself",
        ));
    }
    Ok(Item {
        relative: Filter::path_of(Path::new(""), &source.name_or_share()?),
        source,
        info,
        target,
    })
}

/// Whether `target` is inside the directory `source`: such a copy would never end.
fn is_within(source: &FilePath, target: &FilePath) -> bool {
    match (source, target) {
        (FilePath::Remote(source), FilePath::Remote(target)) => source.contains(target),
        _ => false,
    }
}
