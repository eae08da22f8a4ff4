//! Many seeds of the simulator's tests.

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::record::{self, Seeds};
use crate::test::build::{Built, Program};
use crate::test::pool::{self, Job};
use crate::test::timings;

/// The package whose tests take seeds.
const PACKAGE: &str = "smbeam-sim ";
/// Its programs that do not: they go through every order of events, or replay inputs.
const WITHOUT_SEEDS: [&str; 3] = [
    "smb_direct_never_waits_forever",
    "corpus_replay",
    "smbeam_sim",
];
/// Seeds of one process. A test of a program goes through all of them.
const BATCH: u64 = 50;

/// Runs batches of seeds in turn until the time is over, from the first seed that the record does
/// not have.
pub(super) fn run(built: &Built, time: Duration) -> Result<Seeds> {
    let programs: Vec<&Program> = built
        .unit
        .iter()
        .filter(|program| has_seeds(program))
        .collect();
    let first = record::next_seed()?;
    let mut seeds = Seeds {
        first,
        next: first,
        failed: 0,
    };
    let start = Instant::now();
    let width = thread::available_parallelism().map_or(1, usize::from);
    while start.elapsed() < time {
        let jobs = programs.iter().map(|program| job(program, seeds.next));
        let ended = pool::run(jobs.collect(), width, &timings::directory().join("soak"))?;
        seeds.failed += ended
            .iter()
            .map(|job| u64::from(job.counts.failed))
            .sum::<u64>();
        seeds.next += BATCH;
    }
    Ok(seeds)
}

fn has_seeds(program: &Program) -> bool {
    let target = program.name.strip_prefix(PACKAGE);
    target.is_some_and(|target| !WITHOUT_SEEDS.contains(&target))
}

fn job(program: &Program, first: u64) -> Job {
    let mut command = Command::new(&program.path);
    command
        .current_dir(&program.directory)
        .env("SMBEAM_SIM_FIRST_SEED", first.to_string())
        .env("SMBEAM_SIM_SEEDS", BATCH.to_string());
    Job {
        name: format!("{} from seed {first}", program.name),
        command,
        cases: Vec::new(),
        expected: Duration::ZERO,
    }
}
