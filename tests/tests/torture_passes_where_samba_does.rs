//! Every test of the chosen suites of smbtorture that Samba passes passes here too, or stands in
//! `torture/known-failures.toml` with its reason.

use std::cell::RefCell;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result, ensure};
use smbeam_tests::harness::{self, Test};
use smbeam_tests::lab::Lab;
use smbeam_tests::scratch::Scratch;
use smbeam_tests::subject::{Plan, Server, Share, Subject};
use smbeam_tests::torture::{self, KnownFailures, Verdict};

/// The server that the tests share, started by the first and again after each failure.
type Shared = RefCell<Option<(Scratch, Server)>>;

fn main() -> ExitCode {
    let (tests, known) = match lists() {
        Ok(lists) => lists,
        Err(error) => {
            eprintln!("{error:#}");
            return ExitCode::FAILURE;
        }
    };
    let shared = Shared::default();
    let mut all = vec![Test::new("known_failures_are_tests", || {
        all_exist(&known, &tests)
    })];
    for test in &tests {
        all.push(Test::new(test, || {
            let verdict = run(&shared, test)?;
            known.judge(test, verdict)
        }));
    }
    harness::run(&all)
}

fn lists() -> Result<(Vec<String>, KnownFailures)> {
    Ok((
        torture::passed_by_samba()?,
        KnownFailures::of(Subject::chosen())?,
    ))
}

fn all_exist(known: &KnownFailures, tests: &[String]) -> Result<()> {
    for listed in known.tests() {
        ensure!(
            tests.iter().any(|test| test == listed),
            "no test is called {listed}"
        );
    }
    Ok(())
}

fn run(shared: &Shared, test: &str) -> Result<Verdict> {
    let lab = Lab::find()?;
    let mut shared = shared.borrow_mut();
    if shared.is_none() {
        let scratch = Scratch::new("torture-share")?;
        let server = Server::start(&lab, plan(&scratch)?)?;
        *shared = Some((scratch, server));
    }
    let (scratch, server) = shared.as_ref().context("it was just started")?;
    torture::prepare(test, &scratch.path().join("share"))?;
    let verdict = torture::run(&lab, server, test)?;
    if verdict != Verdict::Passed {
        *shared = None;
        return Ok(verdict);
    }
    empty(&scratch.path().join("share"))?;
    Ok(verdict)
}

/// What is shared. Samba lets anybody log in without a name; smbeam does where such a login leads
/// somewhere. Some tests of smb2.session change to it and back.
fn plan(scratch: &Scratch) -> Result<Plan> {
    let mut plan = Plan::sharing(&scratch.open_folder("share")?);
    plan.shares.push(Share {
        guests: true,
        ..Share::new("open", &scratch.open_folder("open")?)
    });
    Ok(plan)
}

fn empty(folder: &Path) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            fs::remove_dir_all(path)?;
        } else {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}
