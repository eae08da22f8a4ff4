//! `cargo xtask bench-compare`: compares two servers with the same clients on the same files. The
//! runs alternate (A B A B).
//!
//! A *bench* ([`mod@bench`]) is a measurement of a newly started server. It returns one or more
//! *rows* of metrics ([`sample`]). Every bench runs on A and then on B, once per round. The report
//! divides only the two runs of the same round by each other ([`report`]). The same server as A and
//! B shows the noise. Client benches compare clients with one server ([`clients`]), and transport
//! benches compare transports with baselines ([`transports`]).
#![forbid(unsafe_code)]

mod accounting;
mod bench;
mod clients;
mod environment;
mod goals;
mod mount;
mod mount_namespace;
mod options;
mod raw;
mod report;
mod sample;
mod scraper;
mod smbclient;
mod torture;
mod transports;

use std::env;
use std::process::ExitCode;

use anyhow::{Result, ensure};

use crate::bench::Bench;
use crate::clients::ClientBench;
use crate::environment::{Environment, Storage};
use crate::goals::Goal;
use crate::options::{Action, Options};
use crate::report::Record;
use crate::sample::Row;
use crate::transports::{Environment as TransportEnvironment, TransportBench};

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let (first, rest) = arguments.split_first().unzip();
    let result = match first.and_then(|name| transports::end(name)) {
        Some(end) => end(rest.unwrap_or_default()).map(done),
        None => Options::parse(&arguments).and_then(run_action),
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

fn run_action(action: Action) -> Result<ExitCode> {
    match action {
        Action::Help => println!("{}", options::USAGE),
        Action::List => list(),
        Action::Compare(options) => {
            if !mount_namespace::is_inside() {
                return Err(mount_namespace::enter(&options.disk));
            }
            let plan = bench::plan(&options);
            let client_benches: Vec<ClientBench> = ClientBench::chosen(&options).collect();
            let transport_benches: Vec<TransportBench> = TransportBench::chosen(&options).collect();
            ensure!(
                !plan.is_empty() || !client_benches.is_empty() || !transport_benches.is_empty(),
                "--rows matches no bench: --list shows their names"
            );
            let mut records = Vec::new();
            if !plan.is_empty() {
                records.push(compare(&options, &plan)?);
            }
            if !client_benches.is_empty() {
                records.push(compare_clients(&options, &client_benches, &records)?);
            }
            if !transport_benches.is_empty() {
                records.push(compare_transports(&options, &transport_benches, &records)?);
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn list() {
    let benches = Bench::ALL.iter().map(|bench| (bench.name, bench.about));
    let client_benches = ClientBench::ALL
        .iter()
        .map(|client_bench| (client_bench.name, client_bench.about()));
    let transport_benches = TransportBench::ALL
        .iter()
        .map(|transport_bench| (transport_bench.name, transport_bench.about));
    for (name, about) in benches.chain(client_benches).chain(transport_benches) {
        println!("{name:28} {about}");
    }
}

fn compare(options: &Options, plan: &[(Bench, Storage)]) -> Result<Record> {
    let mut environment = Environment::set(options)?;
    let names = options.subjects.clone().map(|side| side.name());
    let mut record = Record::new(names, options, environment.machine());
    for (bench, storage) in plan {
        let title = bench.title(*storage, options);
        let run = |side| bench.run(&mut environment, side, *storage, options);
        take_turns(options, &[], &mut record, &title, run)?;
    }
    conclude(&record, &goals::SERVERS);
    Ok(record)
}

/// `before` holds earlier results, which are written to the same JSON file.
fn compare_clients(
    options: &Options,
    client_benches: &[ClientBench],
    before: &[Record],
) -> Result<Record> {
    let environment = clients::Environment::set(options)?;
    let names = options.subjects.clone().map(|side| side.client_name());
    let mut record = Record::new(names, options, environment::hardware());
    for client_bench in client_benches {
        let run = |side: usize| client_bench.run(&environment, &options.subjects[side]);
        take_turns(options, before, &mut record, client_bench.name, run)?;
    }
    conclude(&record, &goals::CLIENTS);
    Ok(record)
}

/// `before` holds earlier results, which are written to the same JSON file.
fn compare_transports(
    options: &Options,
    transport_benches: &[TransportBench],
    before: &[Record],
) -> Result<Record> {
    let networks: Vec<_> = transport_benches
        .iter()
        .map(|transport_bench| transport_bench.network)
        .collect();
    let environment = TransportEnvironment::set(options, &networks)?;
    let facts = environment::hardware().into_iter();
    let facts = facts.chain(transports::facts(options)).collect();
    let mut record = Record::new(["baseline", "smbeam"], options, facts);
    for transport_bench in transport_benches {
        println!("{}: {}", transport_bench.name, transport_bench.about);
        let run = |side| transport_bench.run(side, &environment, options);
        take_turns(options, before, &mut record, transport_bench.name, run)?;
    }
    if let Some(report) = environment.link_report() {
        println!("{report}");
    }
    conclude(&record, &goals::TRANSPORTS);
    Ok(record)
}

/// Runs a bench on A and B in turn, and writes the results.
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
    record.print_new_lines();
    // Write after every bench, so that an interrupted run keeps its results.
    let records: Vec<&Record> = before.iter().chain([&*record]).collect();
    write_json(options, &records)
}

fn conclude(record: &Record, goals: &[Goal]) {
    println!("\n{}", record.table());
    println!("{}", goals::report(record, goals));
}

fn write_json(options: &Options, records: &[&Record]) -> Result<()> {
    match &options.json {
        Some(path) => report::write_json(records, path),
        None => Ok(()),
    }
}
