//! `cargo xtask test`: everything that must pass, in steps, with one sum at the end.
//!
//! All steps share one build: the same packages, features and profile. The test programs run in
//! parallel from a [`pool`]; cargo's own runner would run them one after the other.

pub(crate) mod build;
mod cargo;
pub(crate) mod counts;
mod deny;
pub(crate) mod interop;
pub(crate) mod pool;
mod report;
pub(crate) mod timings;
mod unit;

use std::cell::{Cell, OnceCell};
use std::process::ExitCode;
use std::thread::{self, JoinHandle};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use smbeam_tests::lab::Part;
use smbeam_tests::python::Python;

use crate::package;
use crate::process::one_line;
use crate::{host, lab};
use build::Built;
use cargo::{cargo, check};
use counts::Counts;
use report::{Found, Outcome};

/// The step that runs only when it is named: its kernel takes minutes to compile.
const RDMA: &str = "rdma";
/// The word that asks for a full run.
const FULL: &str = "full";

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
    ("deny", Step::Deny),
    ("build", Step::Build),
    ("unit", Step::Unit),
    ("lab", Step::Lab),
    ("package", Step::Package),
    ("interop", Step::Interop),
    (RDMA, Step::Rdma),
];

/// One step of the test.
#[derive(Clone, Copy)]
enum Step {
    /// A cargo command that passes or fails.
    Check(&'static [&'static str]),
    /// Licenses, duplicates and sources of the dependencies.
    Deny,
    /// Building every test program, and the binary that the interop tests start.
    Build,
    /// The tests that need no peer.
    Unit,
    /// Building the lab. A lab that cannot be built fails nothing; the tests that need it are
    /// skipped with the reason.
    Lab,
    /// In full runs, the packages that the tests install.
    Package,
    /// The tests against the lab's peers.
    Interop,
    /// The tests against the kernel's client and server over RDMA.
    Rdma,
}

/// The parts of the lab that cannot be built, with the reasons.
type MissingParts = Vec<(Part, String)>;

/// What the steps of one run share.
struct Run {
    is_full: bool,
    built: OnceCell<Built>,
    /// The lab, which a thread builds while cargo compiles.
    lab: OnceCell<MissingParts>,
    lab_thread: Cell<Option<JoinHandle<MissingParts>>>,
}

/// Runs the steps named in `words`, or all but the one that must be named. The word `full` asks
/// for every transport, full sizes and all rounds.
pub(crate) fn run(words: &[String]) -> Result<ExitCode> {
    let only: Vec<&str> = words
        .iter()
        .map(String::as_str)
        .filter(|word| *word != FULL)
        .collect();
    if let Some(unknown) = only
        .iter()
        .find(|name| !STEPS.iter().any(|(step, _)| step == *name))
    {
        bail!("`{unknown}` is no step of the test");
    }
    host::ensure(host::BUILD_TOOLS)?;
    host::ensure(host::INTEROP_TOOLS)?;
    host::ensure_component("rustfmt", "fmt")?;
    host::ensure_component("clippy", "clippy")?;
    let is_full = words.iter().any(|word| word == FULL);
    let is_wanted = |name: &&str| match only.as_slice() {
        [] => **name != *RDMA,
        names => names.contains(name),
    };
    let names = STEPS.iter().map(|(name, _)| *name);
    let run = Run::new(names.filter(is_wanted).any(|name| name == "lab"), is_full);
    let mut outcomes = Vec::new();
    for (name, step) in STEPS.iter().filter(|(name, _)| is_wanted(name)) {
        outcomes.push(run.step(name, *step, is_full)?);
    }
    report::print(&outcomes);
    let failed = outcomes.iter().any(|outcome| outcome.counts.failed > 0);
    Ok(ExitCode::from(u8::from(failed)))
}

impl Run {
    /// Starts the lab's build at once where the run needs the lab: it waits for the network while
    /// cargo waits for the processor.
    fn new(needs_lab: bool, is_full: bool) -> Run {
        let thread = needs_lab.then(|| thread::spawn(move || missing_parts(is_full)));
        Run {
            is_full,
            built: OnceCell::new(),
            lab: OnceCell::new(),
            lab_thread: Cell::new(thread),
        }
    }

    fn step(&self, name: &'static str, step: Step, is_full: bool) -> Result<Outcome> {
        println!("\n=== {name}");
        let start = Instant::now();
        let Found {
            counts,
            cases,
            note,
        } = self.found(step, is_full)?;
        let time = start.elapsed();
        println!("=== {name}: {counts} in {:.1} s", time.as_secs_f64());
        Ok(Outcome {
            name,
            counts,
            time,
            note,
            cases,
        })
    }

    fn found(&self, step: Step, is_full: bool) -> Result<Found> {
        let of_counts = |counts| Found {
            counts,
            ..Found::default()
        };
        match step {
            Step::Check(arguments) => Ok(of_counts(check(&mut cargo(arguments))?)),
            Step::Deny => deny::run().map(of_counts),
            Step::Build => Ok(of_counts(Counts::of_check(self.built().is_ok()))),
            Step::Unit => unit::run(self.built()?, is_full),
            Step::Lab => Ok(Found {
                note: self.lab_note(),
                ..Found::default()
            }),
            Step::Package if !is_full => Ok(Found {
                note: "in full runs".into(),
                ..Found::default()
            }),
            Step::Package => {
                package::run(&["deb", "image", "python"].map(str::to_owned))?;
                Ok(of_counts(Counts::of_check(true)))
            }
            Step::Interop => interop::run(self.built()?, self.missing_parts(), is_full),
            Step::Rdma => interop::run_rdma(self.built()?),
        }
    }

    /// The test programs, built by the first step that needs them.
    fn built(&self) -> Result<&Built> {
        if self.built.get().is_none() {
            let built = build::run()?;
            let _ = self.built.set(built);
        }
        self.built.get().context("the programs were just built")
    }

    /// The parts of the lab that cannot be built, and why.
    fn missing_parts(&self) -> &[(Part, String)] {
        self.lab.get_or_init(|| {
            let missing = self.lab_thread.take().map(JoinHandle::join);
            missing
                .and_then(Result::ok)
                .unwrap_or_else(|| missing_parts(self.is_full))
        })
    }

    fn lab_note(&self) -> String {
        let reasons = self
            .missing_parts()
            .iter()
            .map(|(_, reason)| reason.clone());
        let reasons: Vec<String> = reasons.collect();
        match reasons.is_empty() {
            true => "ready".into(),
            false => reasons.join("; "),
        }
    }
}

/// Builds the lab. The parts that cannot be built, and why. Only a full run opens a browser and
/// installs PyTorch.
fn missing_parts(is_full: bool) -> MissingParts {
    for part in [Part::Samba, Part::Guest, Part::Suites, Part::Monitoring] {
        if let Err(error) = lab::build_part(part) {
            println!("lab: {error:#}");
            return vec![(part, one_line(&error))];
        }
    }
    let mut missing = Vec::new();
    for part in [Part::Browser, Part::Torch] {
        if is_full && let Err(error) = lab::build_part(part) {
            println!("lab: {error:#}");
            missing.push((part, one_line(&error)));
        }
    }
    // The tests would install the packages of Python themselves, several of them at a time.
    for environment in [Python::find(), Python::with_programs()] {
        if let Err(error) = environment {
            println!("lab: {error:#}");
        }
    }
    missing
}
