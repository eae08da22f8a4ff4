//! `cargo xtask test`: everything that must pass, in steps, with one sum at the end.

mod tally;

use std::env;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use smbeam_tests::lab::Part;

use crate::{bench, host, lab, table};
use tally::Tally;

/// The server that the interop tests start; see `smbeam_tests::subject`.
const BINARY: &str = "SMBEAM_BIN";

const STEPS: &[(&str, Step)] = &[
    ("fmt", Step::Check(&["fmt", "--all", "--check"])),
    (
        "clippy",
        Step::Check(&[
            "clippy",
            "--workspace",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ]),
    ),
    (
        "doc",
        Step::Check(&[
            "doc",
            "--workspace",
            "--no-deps",
            "--document-private-items",
        ]),
    ),
    (
        "unit",
        Step::Tests(&[
            "test",
            "--workspace",
            "--exclude",
            "smbeam-tests",
            "--no-fail-fast",
        ]),
    ),
    ("compare", Step::Compare),
    ("lab", Step::Lab),
    ("interop", Step::Interop),
    (RDMA, Step::Rdma),
];

/// What passes or fails of the comparisons.
const COMPARE_CHECKS: &[&[&str]] = &[
    &["fmt", "--check"],
    &["clippy", "--all-targets", "--", "-D", "warnings"],
];

/// The step that is run only when it is asked for: it takes a kernel of its own and minutes.
const RDMA: &str = "rdma";

/// One step of the test.
#[derive(Clone, Copy)]
enum Step {
    /// A cargo command that passes or fails.
    Check(&'static [&'static str]),
    /// A cargo command that runs tests.
    Tests(&'static [&'static str]),
    /// Everything of the above for the comparisons, which are a workspace of their own.
    Compare,
    /// Building the lab. A lab that cannot be built fails nothing; the tests that need it say so.
    Lab,
    /// The tests against the lab's peers.
    Interop,
    /// The tests against the kernel's client and server over RDMA.
    Rdma,
}

struct Outcome {
    name: &'static str,
    tally: Tally,
    time: Duration,
    note: String,
}

/// Runs the steps named in `only`, or all but the one that has to be asked for.
pub(crate) fn run(only: &[String]) -> Result<ExitCode> {
    if let Some(unknown) = only
        .iter()
        .find(|name| !STEPS.iter().any(|(step, _)| step == name))
    {
        bail!("no step is called {unknown}");
    }
    host::ensure(host::BUILD_TOOLS)?;
    host::ensure_component("rustfmt", "fmt")?;
    host::ensure_component("clippy", "clippy")?;
    let mut outcomes = Vec::new();
    for (name, step) in STEPS {
        let is_wanted = match only {
            [] => *name != RDMA,
            names => names.iter().any(|wanted| wanted == name),
        };
        if is_wanted {
            outcomes.push(run_step(name, *step)?);
        }
    }
    Ok(summarize(&outcomes))
}

/// The folder of the workspace.
pub(crate) fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map_or_else(PathBuf::new, Path::to_path_buf)
}

fn run_step(name: &'static str, step: Step) -> Result<Outcome> {
    println!("\n=== {name}");
    let start = Instant::now();
    let (tally, note) = match step {
        Step::Check(arguments) => (check(&mut cargo(arguments))?, String::new()),
        Step::Tests(arguments) => (tests(&mut cargo(arguments))?, String::new()),
        Step::Compare => (compare()?, String::new()),
        Step::Lab => (Tally::default(), build_lab()),
        Step::Interop => (interop()?, String::new()),
        Step::Rdma => rdma()?,
    };
    let time = start.elapsed();
    println!("=== {name}: {tally} in {:.1} s", time.as_secs_f64());
    Ok(Outcome {
        name,
        tally,
        time,
        note,
    })
}

fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command
        .args(arguments)
        .current_dir(workspace())
        .env("RUSTDOCFLAGS", "-D warnings");
    command
}

/// Runs a cargo command that passes or fails.
fn check(command: &mut Command) -> Result<Tally> {
    let status = command.status().context("cannot run cargo")?;
    Ok(Tally::of_check(status.success()))
}

/// Runs a cargo command that runs tests, in view, and counts them.
fn tests(command: &mut Command) -> Result<Tally> {
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot run cargo")?;
    let output = child.stdout.take().context("the output was piped")?;
    let mut tally = Tally::default();
    for line in BufReader::new(output).split(b'\n') {
        let line = line.context("cannot read the output of cargo")?;
        let line = String::from_utf8_lossy(&line);
        println!("{line}");
        tally.add_line(&line);
    }
    let status = child.wait()?;
    if !status.success() && tally.failed == 0 {
        // It did not come to its tests, or a test program died: that is a failure too.
        tally.failed = 1;
    }
    Ok(tally)
}

/// What both workspaces depend on is built once.
fn compare() -> Result<Tally> {
    let command = |arguments: &[&str]| {
        let mut command = cargo(arguments);
        command
            .current_dir(bench::folder())
            .env("CARGO_TARGET_DIR", target());
        command
    };
    let mut sum = Tally::default();
    for arguments in COMPARE_CHECKS {
        sum.add(check(&mut command(arguments))?);
    }
    sum.add(tests(&mut command(&["test", "--no-fail-fast"]))?);
    Ok(sum)
}

fn build_lab() -> String {
    let missing: Vec<&str> = missing_parts()
        .iter()
        .map(|(_, reason)| reason.as_str())
        .collect();
    if missing.is_empty() {
        "ready".into()
    } else {
        missing.join("; ")
    }
}

/// The parts of the lab that cannot be built, and why. What failed once in a run is not tried
/// again.
fn missing_parts() -> &'static [(Part, String)] {
    static MISSING: OnceLock<Vec<(Part, String)>> = OnceLock::new();
    MISSING.get_or_init(|| {
        let mut missing = Vec::new();
        for part in [Part::Samba, Part::Guest] {
            if let Err(error) = lab::build_part(part) {
                println!("lab: {error:#}");
                let words = format!("{error:#}");
                missing.push((part, words.split_whitespace().collect::<Vec<_>>().join(" ")));
                break;
            }
        }
        missing
    })
}

fn interop() -> Result<Tally> {
    let built = check(&mut cargo(&["build", "--package", "smbeam"]))?;
    if built.failed > 0 {
        return Ok(built);
    }
    let mut command = cargo(&["test", "--package", "smbeam-tests", "--no-fail-fast"]);
    command.env(BINARY, target().join("debug/smbeam"));
    command.env(
        Part::Rdma.missing_variable(),
        "not part of this step: cargo xtask test rdma",
    );
    for (part, reason) in missing_parts() {
        command.env(part.missing_variable(), reason);
    }
    tests(&mut command)
}

/// Runs the tests over RDMA; without their part of the lab they are skipped.
fn rdma() -> Result<(Tally, String)> {
    let mut command = cargo(&["test", "--package", "smbeam-tests", "--test", "rdma_peers"]);
    let mut note = String::new();
    if let Err(error) = lab::build_rdma() {
        println!("lab: {error:#}");
        let words = format!("{error:#}");
        note = words.split_whitespace().collect::<Vec<_>>().join(" ");
        command.env(Part::Rdma.missing_variable(), &note);
    }
    // The rates that the tests tell are an optimized program's where one is named.
    if env::var_os(BINARY).is_none() {
        let built = check(&mut cargo(&["build", "--package", "smbeam"]))?;
        if built.failed > 0 {
            return Ok((built, note));
        }
        command.env(BINARY, target().join("debug/smbeam"));
    }
    Ok((tests(&mut command)?, note))
}

/// Where cargo puts what it builds.
pub(crate) fn target() -> PathBuf {
    let named = env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    named.map_or_else(
        || workspace().join("target"),
        |folder| workspace().join(folder),
    )
}

fn summarize(outcomes: &[Outcome]) -> ExitCode {
    let mut sum = Tally::default();
    let mut rows = Vec::new();
    for Outcome {
        name,
        tally,
        time,
        note,
    } in outcomes
    {
        sum.add(*tally);
        let time = format!("{:.1} s", time.as_secs_f64());
        let counts = [tally.passed, tally.failed, tally.skipped].map(|count| count.to_string());
        let note = note.lines().next().unwrap_or_default().to_owned();
        rows.push([vec![(*name).to_owned(), time], counts.to_vec(), vec![note]].concat());
    }
    let head = ["step", "time", "passed", "failed", "skipped", ""];
    println!("\n{}\n{sum}", table::render(&head, &rows));
    ExitCode::from(u8::from(sum.failed > 0))
}
