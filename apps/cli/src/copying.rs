//! What get, put and cp do alike: files and folders go into a folder, or one gets a new name.

use std::collections::HashSet;

use clap::Args;

use crate::cat::cat;
use crate::connect::{ConnectArguments, Connector};
use crate::exit::{Exit, Failure, Outcome, Report};
use crate::interrupt::Interrupt;
use crate::location::Location;
use crate::place::{Found, Kind, Place, Remote};
use crate::progress::{OutputArguments, Progress};
use crate::transfer::{Item, Transfer, TransferArguments};

/// How get, put and cp work.
#[derive(Debug, Args)]
pub(crate) struct CopyArguments {
    /// Folders as well, with all that is in them.
    #[arg(short, long)]
    recursive: bool,
    /// Keep times; between servers attributes as well.
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
    let connector = Connector::new(&arguments.connect);
    let items = items(arguments, &connector, sources, target, report);
    let items = match items {
        Ok(items) if !report.is_over() => items,
        Ok(_) => return,
        Err(failure) => return report.failed(&failure),
    };
    transfer(arguments, report, |transfer| transfer.run(items));
}

/// Writes standard input to a file on a server.
pub(crate) fn from_standard_input(arguments: &CopyArguments, target: &Location, report: &Report) {
    let connector = Connector::new(&arguments.connect);
    match stream_target(arguments, &connector, target) {
        Ok(target) => transfer(arguments, report, |transfer| {
            transfer.take_standard_input(&target);
        }),
        Err(failure) => report.failed(&failure),
    }
}

/// Writes files on servers to standard output.
pub(crate) fn to_standard_output(arguments: &CopyArguments, sources: &[Location], report: &Report) {
    if let Err(failure) = arguments.check_stream("standard output") {
        return report.failed(&failure);
    }
    let connector = Connector::new(&arguments.connect);
    for source in sources {
        let found = report.found(connector.expand_location(source));
        for found in found {
            match &found.place {
                Place::Remote(remote) if !report.is_over() => report.take(cat(remote)),
                Place::Remote(_) | Place::Local(_) => {}
            }
        }
        if report.is_over() {
            break;
        }
    }
}

impl CopyArguments {
    /// Refuses what cannot be done with bytes that come once.
    fn check_stream(&self, name: &str) -> Outcome {
        let wants_more = self.preserve || self.transfer.wants_to_return();
        match wants_more {
            true => Err(Failure::usage(
                name,
                "has no times and comes once: no --preserve, --continue or --verify",
            )),
            false => Ok(()),
        }
    }
}

fn stream_target(
    arguments: &CopyArguments,
    connector: &Connector,
    target: &Location,
) -> Outcome<Remote> {
    arguments.check_stream("standard input")?;
    let Place::Remote(remote) = connector.place(target)? else {
        return Err(Failure::usage(target, "not on a server"));
    };
    let facts = Place::Remote(remote.clone()).look(true)?;
    if target.names_a_folder() || facts.is_some_and(|facts| facts.is_folder()) {
        let reason = "a folder: say what standard input is to be called in it";
        return Err(Failure::usage(target, reason));
    }
    Ok(remote)
}

/// Has a transfer do its work, and tells the sum.
fn transfer(arguments: &CopyArguments, report: &Report, work: impl FnOnce(&Transfer<'_>)) {
    let interrupt = match Interrupt::catch() {
        Ok(interrupt) => interrupt,
        Err(error) => return report.failed(&Failure::local("signals", &error)),
    };
    let policy = arguments
        .transfer
        .policy(arguments.preserve, &arguments.connect);
    let progress = Progress::start(arguments.output, report);
    work(&Transfer::new(policy, report, &progress, &interrupt));
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
    let place = connector.place(target)?;
    let facts = place.look(true)?;
    let is_folder = facts.is_some_and(|facts| facts.is_folder());
    if !is_folder && (found.len() > 1 || target.names_a_folder()) {
        return Err(Failure::usage(place, "not a folder"));
    }
    let mut items = Vec::new();
    let mut taken = HashSet::new();
    for source in found {
        match item(arguments, source, &place, is_folder) {
            Ok(item) if !taken.insert(item.target.key()) => report.failed(&is_taken(&item.source)),
            Ok(item) => items.push(item),
            Err(failure) => report.failed(&failure),
        }
    }
    Ok(items)
}

/// Of two sources for one target the second would replace the first, or both would be written at
/// once.
pub(crate) fn is_taken(source: &impl ToString) -> Failure {
    let reason = "another source has the same target: the first one goes there";
    Failure::new(Exit::Exists, source.to_string(), reason)
}

fn item(arguments: &CopyArguments, found: Found, target: &Place, is_folder: bool) -> Outcome<Item> {
    let facts = found.facts()?;
    let source = found.place;
    if facts.is_folder() && !arguments.recursive {
        return Err(Failure::usage(
            source,
            "a folder: give -r to copy all in it",
        ));
    }
    if facts.kind == Kind::Other && !source.is_remote() {
        return Err(Failure::usage(source, "neither a file nor a folder"));
    }
    let target = match is_folder {
        true => {
            let name = source.name_or_share()?;
            let joined = target.join(&name);
            joined.map_err(|error| Failure::name(&source, error))?
        }
        false => target.clone(),
    };
    if facts.is_folder() && is_within(&source, &target) {
        return Err(Failure::usage(
            target,
            "a folder cannot be copied into itself",
        ));
    }
    Ok(Item {
        source,
        facts,
        target,
    })
}

/// Whether a folder is to go into itself: it would never end.
fn is_within(source: &Place, target: &Place) -> bool {
    match (source, target) {
        (Place::Remote(source), Place::Remote(target)) => source.holds(target),
        _ => false,
    }
}
