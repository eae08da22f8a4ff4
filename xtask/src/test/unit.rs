//! The tests that need no peer: one process per test program.

use std::process::Command;
use std::thread;

use anyhow::Result;
use smbeam_tests::scale;

use super::build::{Built, Program};
use super::cargo::cargo;
use super::pool::{self, Job};
use super::report::{CaseTime, Found};
use super::timings::{self, Timings};

/// Runs the programs of libtest, then the examples in the documentation.
pub(crate) fn run(built: &Built, is_full: bool) -> Result<Found> {
    let timings = Timings::load();
    let job = |program: &Program| {
        let mut command = Command::new(&program.path);
        command
            .current_dir(&program.directory)
            .env("CARGO_MANIFEST_DIR", &program.directory)
            .envs([scale::variable(is_full)]);
        Job {
            name: program.name.clone(),
            command,
            cases: Vec::new(),
            expected: timings.expected(&program.name),
        }
    };
    let mut jobs: Vec<Job> = built.unit.iter().map(job).collect();
    jobs.push(documentation(&timings));
    let width = thread::available_parallelism().map_or(1, usize::from);
    let ended = pool::run(jobs, width, &timings::directory().join("unit"))?;
    let mut found = Found::default();
    for job in &ended {
        found.counts.add(job.counts);
        found.cases.push(CaseTime::new(&job.name, job.time));
    }
    timings.store(&ended);
    Ok(found)
}

/// The examples in the documentation, which cargo compiles and runs by itself.
fn documentation(timings: &Timings) -> Job {
    let name = "documentation examples";
    Job {
        name: name.into(),
        command: cargo(&["test", "--workspace", "--doc", "--quiet"]),
        cases: Vec::new(),
        expected: timings.expected(name),
    }
}
