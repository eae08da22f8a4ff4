//! The tests against the lab's peers: one process per case, or per batch of cases.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use smbeam_tests::lab::Part;
use smbeam_tests::scale;

use super::build::Built;
use super::counts::Counts;
use super::pool::{self, Ended, Job};
use super::report::{CaseTime, Found};
use super::timings::{self, Timings};
use crate::lab;
use crate::package;
use crate::process::one_line;

/// The variable that names the server under test; see `smbeam_tests::subject`.
const BINARY: &str = "SMBEAM_BIN";
/// The variable that names the directory of the client's examples.
const EXAMPLES: &str = "SMBEAM_EXAMPLES";
/// The variable that names the compiled module of the Python package.
const PYTHON: &str = "SMBEAM_PYTHON";
/// The variable that names the directory of the packages.
const PACKAGES: &str = "SMBEAM_PACKAGES";
/// The variable that overrides the number of processes that run at a time.
const JOBS: &str = "SMBEAM_TEST_JOBS";
/// Processes for each processor: most of a case is waiting. With three on two processors the cases
/// take 870 s, with two 1,140 s.
const JOBS_PER_PROCESSOR: usize = 3;
/// The cases that need RDMA devices.
const RDMA_MODULE: &str = "rdma_peers::";

/// A case of the interop program, as its `--plan` prints it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Case {
    name: String,
    is_alone: bool,
    batch: usize,
}

/// Runs the cases of a default or full run. `missing` are the parts of the lab that could not be
/// built.
pub(crate) fn run(built: &Built, missing: &[(Part, String)], is_full: bool) -> Result<Found> {
    let mut environment = variables(built);
    environment.push((
        Part::Rdma.missing_variable().into(),
        "not part of this step: cargo xtask test rdma".into(),
    ));
    if is_full {
        environment.push((PACKAGES.into(), package::directory().into()));
    }
    for (part, reason) in missing {
        environment.push((part.missing_variable().into(), reason.into()));
    }
    let (name, value) = scale::variable(is_full);
    environment.push((name.into(), value.into()));
    let cases = plan(built, &environment)?;
    run_cases(built, &environment, cases)
}

/// Runs the cases over RDMA devices. Without their part of the lab they are skipped.
pub(crate) fn run_rdma(built: &Built) -> Result<Found> {
    let mut environment = variables(built);
    let mut note = String::new();
    if let Err(error) = lab::build_rdma() {
        println!("lab: {error:#}");
        note = one_line(&error);
        environment.push((Part::Rdma.missing_variable().into(), note.clone().into()));
    }
    let mut cases = plan(built, &environment)?;
    cases.retain(|case| case.name.starts_with(RDMA_MODULE));
    // Each guest has two processors and most of the memory.
    cases.iter_mut().for_each(|case| case.is_alone = true);
    let found = run_cases(built, &environment, cases)?;
    Ok(Found { note, ..found })
}

/// Runs the cases of a full run whose names start with one of `modules`.
pub(crate) fn run_modules(built: &Built, modules: &[&str]) -> Result<Counts> {
    let mut environment = variables(built);
    let (name, value) = scale::variable(true);
    environment.push((name.into(), value.into()));
    let mut cases = plan(built, &environment)?;
    cases.retain(|case| modules.iter().any(|module| case.name.starts_with(module)));
    Ok(run_cases(built, &environment, cases)?.counts)
}

/// The environment of the cases. A server that the caller names is the one under test.
fn variables(built: &Built) -> Vec<(OsString, OsString)> {
    let binary = env::var_os(BINARY).unwrap_or_else(|| built.binary.clone().into());
    vec![
        (BINARY.into(), binary),
        (EXAMPLES.into(), built.examples.clone().into()),
        (
            PYTHON.into(),
            built.binary.with_file_name("lib_smbeam.so").into(),
        ),
    ]
}

/// The cases that the interop program would run, with how they are scheduled.
fn plan(built: &Built, environment: &[(OsString, OsString)]) -> Result<Vec<Case>> {
    let output = Command::new(&built.interop)
        .arg("--plan")
        .envs(environment.iter().cloned())
        .output()
        .context("cannot run the interop program")?;
    ensure!(output.status.success(), "the interop program has no plan");
    let text = String::from_utf8(output.stdout)?;
    text.lines()
        .map(|line| case(line).with_context(|| format!("not a line of a plan: {line}")))
        .collect()
}

fn case(line: &str) -> Option<Case> {
    let mut fields = line.split('\t');
    let case = Case {
        name: fields.next()?.to_owned(),
        is_alone: fields.next()? == "alone",
        batch: fields.next()?.parse().ok()?,
    };
    fields.next().is_none().then_some(case)
}

/// Runs the cases side by side, then those that must be alone.
fn run_cases(
    built: &Built,
    environment: &[(OsString, OsString)],
    cases: Vec<Case>,
) -> Result<Found> {
    let timings = Timings::load();
    let job = |cases: &[Case]| job(built, environment, cases, &timings);
    let (alone, beside): (Vec<Case>, Vec<Case>) = cases.into_iter().partition(|c| c.is_alone);
    let beside = batches(&beside).iter().map(|batch| job(batch)).collect();
    let alone = batches(&alone).iter().map(|batch| job(batch)).collect();
    let outputs = timings::directory().join("interop");
    let mut ended = pool::run(beside, width(), &outputs)?;
    ended.extend(pool::run(alone, 1, &outputs)?);
    let mut found = Found::default();
    for job in &ended {
        found.counts.add(job.counts);
        found.cases.extend(case_times(job));
    }
    timings.store(&ended);
    Ok(found)
}

fn width() -> usize {
    let named = env::var(JOBS).ok().and_then(|jobs| jobs.parse().ok());
    let processors = || thread::available_parallelism().map_or(1, usize::from);
    named.unwrap_or_else(|| processors() * JOBS_PER_PROCESSOR)
}

/// The cases in groups, each of which is one process: cases of one module in their order.
fn batches(cases: &[Case]) -> Vec<Vec<Case>> {
    let mut modules: BTreeMap<&str, Vec<Case>> = BTreeMap::new();
    for case in cases {
        let module = case.name.split("::").next().unwrap_or_default();
        modules.entry(module).or_default().push(case.clone());
    }
    let groups = modules.values().flat_map(|cases| {
        let batch = cases.first().map_or(1, |case| case.batch.max(1));
        cases.chunks(batch).map(<[Case]>::to_vec)
    });
    groups.collect()
}

fn job(
    built: &Built,
    environment: &[(OsString, OsString)],
    cases: &[Case],
    timings: &Timings,
) -> Job {
    // A case that needs another process of its group would outlive this program without setpriv.
    let mut command = Command::new("setpriv");
    let names = cases.iter().map(|case| case.name.clone());
    let names: Vec<String> = names.collect();
    command
        .args(["--pdeathsig", "KILL", "--"])
        .arg(&built.interop)
        .arg("--exact")
        .args(&names)
        .envs(environment.iter().cloned());
    let first = names.first().cloned().unwrap_or_default();
    let name = match names.len() {
        1 => first,
        count => format!("{first} and {} more", count - 1),
    };
    Job {
        expected: timings.expected(&name),
        name,
        command,
        cases: names,
    }
}

/// The times of the cases in the output of a job.
fn case_times(job: &Ended) -> Vec<CaseTime> {
    job.output.lines().filter_map(case_time).collect()
}

fn case_time(line: &str) -> Option<CaseTime> {
    let (name, verdict) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let (_, seconds) = verdict.strip_suffix(" s)")?.rsplit_once('(')?;
    let seconds: f64 = seconds.parse().ok()?;
    Some(CaseTime::new(name, Duration::from_secs_f64(seconds)))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Case, batches, case, case_time};

    fn cases(lines: &[&str]) -> Vec<Case> {
        lines
            .iter()
            .map(|line| case(line).expect("a line"))
            .collect()
    }

    #[test]
    fn a_plan_is_cut_into_processes() {
        let cases = cases(&[
            "a::1\tbeside\t1",
            "b::1\tbeside\t2",
            "b::2\tbeside\t2",
            "b::3\tbeside\t2",
        ]);
        let sizes: Vec<usize> = batches(&cases).iter().map(Vec::len).collect();
        assert_eq!(sizes, [1, 2, 1]);
        assert!(case("a::1\talone").is_none() && case("a::1\talone\t1").is_some());
    }

    #[test]
    fn the_time_of_a_case_is_in_its_line() {
        let time = case_time("test a::b ... ok (1.5 s)").expect("a time");
        assert_eq!(time.time, Duration::from_millis(1500));
        assert!(case_time("test a::b ... skipped: no lab").is_none());
    }
}
