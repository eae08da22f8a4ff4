//! `cargo xtask bench-compare`: two servers in turn, A B A B, with the same clients on the same
//! files.
//!
//! A *bench* ([`bench`]) is one thing that a client does to a fresh server process; it yields one
//! or more *rows* of metrics ([`sample`]). Every bench runs on A, then on B, as often as there are
//! rounds; the two runs of a round are neighbours in time, and only they are divided by each other
//! ([`report`]). The same server on both sides shows the noise.
#![forbid(unsafe_code)]

mod accounting;
mod bars;
mod bench;
mod enclosure;
mod options;
mod raw;
mod report;
mod sample;
mod smbclient;
mod stage;
mod torture;

use std::env;
use std::process::ExitCode;

use anyhow::Result;

use crate::bench::Bench;
use crate::options::{Options, Wish};
use crate::report::Record;
use crate::stage::Stage;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match Options::parse(&arguments).and_then(fulfil) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn fulfil(wish: Wish) -> Result<ExitCode> {
    match wish {
        Wish::Help => println!("{}", options::USAGE),
        Wish::List => Bench::ALL
            .iter()
            .for_each(|bench| println!("{:14} {}", bench.name, bench.about)),
        Wish::Compare(options) => {
            if !enclosure::is_inside() {
                return Err(enclosure::enter(&options.disk));
            }
            compare(&options)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn compare(options: &Options) -> Result<()> {
    let mut stage = Stage::set(options)?;
    let mut record = Record::new(options, stage.machine());
    for (bench, storage) in bench::programme(options) {
        for round in 0..options.rounds {
            for side in 0..2 {
                match bench.run(&mut stage, side, storage, options) {
                    Ok(rows) => record.add(side, round, rows),
                    Err(error) => record.fail(side, &bench.title(storage), &error),
                }
            }
        }
        record.print_progress();
        if let Some(path) = &options.json {
            // After every bench: a run that is stopped leaves what it has.
            record.write_json(path)?;
        }
    }
    println!("\n{}", record.table());
    println!("{}", bars::report(&record));
    Ok(())
}
