//! `cargo xtask bench-compare`: two servers in turn, A B A B, with the same clients on the same
//! files.
//!
//! A *bench* ([`bench`]) is one thing that a client does to a fresh server process; it yields one
//! or more *rows* of metrics ([`sample`]). Every bench runs on A, then on B, as often as there are
//! rounds; the two runs of a round are neighbours in time, and only they are divided by each other
//! ([`report`]). The same server on both sides shows the noise. Clients take turns at the same
//! server ([`clients`]), and transports are set beside yardsticks of their own ([`transports`]).
#![forbid(unsafe_code)]

mod accounting;
mod bars;
mod bench;
mod clients;
mod enclosure;
mod mount;
mod options;
mod raw;
mod report;
mod sample;
mod smbclient;
mod stage;
mod torture;
mod transports;

use std::env;
use std::process::ExitCode;

use anyhow::{Result, ensure};

use crate::bars::Bar;
use crate::bench::Bench;
use crate::clients::Errand;
use crate::options::{Options, Wish};
use crate::report::Record;
use crate::sample::Row;
use crate::stage::{Stage, Storage};
use crate::transports::{Duel, Place};

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let (first, rest) = arguments.split_first().unzip();
    let result = match first.and_then(|name| transports::end(name)) {
        Some(end) => end(rest.unwrap_or_default()).map(done),
        None => Options::parse(&arguments).and_then(fulfil),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn done((): ()) -> ExitCode {
    ExitCode::SUCCESS
}

fn fulfil(wish: Wish) -> Result<ExitCode> {
    match wish {
        Wish::Help => println!("{}", options::USAGE),
        Wish::List => list(),
        Wish::Compare(options) => {
            if !enclosure::is_inside() {
                return Err(enclosure::enter(&options.disk));
            }
            let programme = bench::programme(&options);
            let errands: Vec<Errand> = Errand::chosen(&options).collect();
            let duels: Vec<Duel> = Duel::chosen(&options).collect();
            ensure!(
                !programme.is_empty() || !errands.is_empty() || !duels.is_empty(),
                "--rows names nothing that --list has"
            );
            let mut records = Vec::new();
            if !programme.is_empty() {
                records.push(compare(&options, &programme)?);
            }
            if !errands.is_empty() {
                records.push(compare_clients(&options, &errands, &records)?);
            }
            if !duels.is_empty() {
                records.push(compare_transports(&options, &duels, &records)?);
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn list() {
    let benches = Bench::ALL.iter().map(|bench| (bench.name, bench.about));
    let errands = Errand::ALL
        .iter()
        .map(|errand| (errand.name, errand.about()));
    let duels = Duel::ALL.iter().map(|duel| (duel.name, duel.about));
    for (name, about) in benches.chain(errands).chain(duels) {
        println!("{name:28} {about}");
    }
}

fn compare(options: &Options, programme: &[(Bench, Storage)]) -> Result<Record> {
    let mut stage = Stage::set(options)?;
    let names = options.subjects.clone().map(|side| side.name());
    let mut record = Record::new(names, options, stage.machine());
    for (bench, storage) in programme {
        let title = bench.title(*storage);
        let run = |side| bench.run(&mut stage, side, *storage, options);
        take_turns(options, &[], &mut record, &title, run)?;
    }
    conclude(&record, &bars::SERVERS);
    Ok(record)
}

/// `before`: what was measured already, to be written along.
fn compare_clients(options: &Options, errands: &[Errand], before: &[Record]) -> Result<Record> {
    let place = clients::Place::set(options)?;
    let names = options.subjects.clone().map(|side| side.client_name());
    let mut record = Record::new(names, options, stage::hardware());
    for errand in errands {
        let run = |side: usize| errand.run(&place, &options.subjects[side]);
        take_turns(options, before, &mut record, errand.name, run)?;
    }
    conclude(&record, &bars::CLIENTS);
    Ok(record)
}

/// `before`: what was measured already, to be written along.
fn compare_transports(options: &Options, duels: &[Duel], before: &[Record]) -> Result<Record> {
    let networks: Vec<_> = duels.iter().map(|duel| duel.network).collect();
    let place = Place::set(options, &networks)?;
    let facts = stage::hardware().into_iter();
    let facts = facts.chain(transports::facts(options)).collect();
    let mut record = Record::new(["yardstick", "smbeam"], options, facts);
    for duel in duels {
        println!("{}: {}", duel.name, duel.about);
        let run = |side| duel.run(side, &place, options);
        take_turns(options, before, &mut record, duel.name, run)?;
    }
    if let Some(report) = place.link_report() {
        println!("{report}");
    }
    conclude(&record, &bars::TRANSPORTS);
    Ok(record)
}

/// Lets both sides `run` what `title` says, A B A B, and writes what came of it.
fn take_turns(
    options: &Options,
    before: &[Record],
    record: &mut Record,
    title: &str,
    mut run: impl FnMut(usize) -> Result<Vec<Row>>,
) -> Result<()> {
    for round in 0..options.rounds {
        for side in 0..2 {
            match run(side) {
                Ok(rows) => record.add(side, round, rows),
                Err(error) => record.fail(side, title, &error),
            }
        }
    }
    record.print_progress();
    // After every bench: a run that is stopped leaves what it has.
    let records: Vec<&Record> = before.iter().chain([&*record]).collect();
    write_json(options, &records)
}

fn conclude(record: &Record, bars: &[Bar]) {
    println!("\n{}", record.table());
    println!("{}", bars::report(record, bars));
}

fn write_json(options: &Options, records: &[&Record]) -> Result<()> {
    match &options.json {
        Some(path) => report::write_json(records, path),
        None => Ok(()),
    }
}
