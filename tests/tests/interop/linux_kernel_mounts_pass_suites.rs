//! Suites and programs of other projects work on a mount of a stock Linux kernel, with the SMB3
//! POSIX extensions and without them, as they do over smbd.
//!
//! A default run has a short form with the extensions, against smbeam.

use std::time::Duration;

use anyhow::{Result, ensure};
use smbeam_tests::harness::Test;
use smbeam_tests::lab::{Lab, Missing};
use smbeam_tests::mounts::{FAULTS, MountStage, script};
use smbeam_tests::subject::Subject;
use smbeam_tests::suites::pjdfstest::Outcome;
use smbeam_tests::suites::workload::{DBENCH, FIO, GIT, RSYNC, SQLITE, Workload};
use smbeam_tests::suites::{fsx, pjdfstest};
use smbeam_tests::unix_tree;

/// Options of the mounts. With `idsfromsid` files show the owners that the server has.
const POSIX: &str = "vers=3.1.1,posix,idsfromsid";
const PLAIN: &str = "vers=3.1.1";
/// Failures of pjdfstest that are known.
const KNOWN_POSIX: &str = include_str!("../../suites/pjdfstest-cifs-posix.txt");
const KNOWN_PLAIN: &str = include_str!("../../suites/pjdfstest-cifs.txt");
/// The tests of a default run.
const PATTERNS: [&str; 2] = ["rmdir", "unlink"];
/// How long a guest may run.
const TIME_LIMIT: Duration = Duration::from_secs(14 * 60);
/// The directory of the suites, below which everything may enter.
const DIRECTORY: &str = "/mnt/a/work";

pub(crate) fn tests() -> Vec<Test> {
    let mut tests = vec![
        Test::new("short_suites_with_posix", run_short),
        Test::new("pjdfstest_with_posix", || compare(POSIX, KNOWN_POSIX)).long(),
        Test::new("pjdfstest_without_posix", || compare(PLAIN, KNOWN_PLAIN)).long(),
    ];
    for (subject, server) in [(Subject::Smbeam, "smbeam"), (Subject::Samba, "samba")] {
        for (options, name) in [(POSIX, "fsx_with_posix"), (PLAIN, "fsx_without_posix")] {
            let run = move || run_fsx(subject, options, 100_000);
            tests.push(Test::new(&format!("{name}_on_{server}"), run).long());
        }
        for (name, workload, amount) in [
            ("dbench", DBENCH, 60),
            ("fio", FIO, 32),
            ("git", GIT, 2000),
            ("rsync", RSYNC, 0),
            ("sqlite", SQLITE, 5000),
        ] {
            let run = move || run_workload(subject, workload, amount);
            tests.push(Test::new(&format!("{name}_with_posix_on_{server}"), run).long());
        }
    }
    tests
}

fn stage(subject: Subject) -> Result<MountStage> {
    Lab::find_with_suites()?;
    MountStage::as_root(subject, "suite")
}

/// Runs commands in a new directory of a mount.
fn run(stage: &MountStage, options: &str, commands: &str) -> Result<()> {
    let commands = format!("mkdir {DIRECTORY}\nchmod 755 {DIRECTORY}\n{commands}");
    let text = script(&[("a", options)], &commands, FAULTS);
    let report = stage.run_within(&text, TIME_LIMIT)?;
    print!("{}", report.console);
    Ok(())
}

fn run_short() -> Result<()> {
    let stage = stage(Subject::Smbeam)?;
    let scratch = stage.scratch.path();
    let mut commands = pjdfstest::prepare(scratch, DIRECTORY, &PATTERNS)?;
    commands += &fsx::prepare(scratch, DIRECTORY, 500, 7)?;
    run(&stage, &uncached(POSIX), &commands)?;
    pjdfstest::outcome(scratch)?.check(KNOWN_POSIX)
}

/// Every failure is known, and smbd passes no more tests.
fn compare(options: &str, known: &str) -> Result<()> {
    let found = run_pjdfstest(Subject::Smbeam, options)?;
    let peer = run_pjdfstest(Subject::Samba, options)?;
    for (name, reason) in &found.failed {
        let over_smbd = match peer.failed.contains_key(name) {
            true => "fails over smbd too",
            false => "passes over smbd",
        };
        println!("{name}: {over_smbd}: {reason}");
    }
    found.check(known)?;
    let (ours, theirs) = (found.passed.len(), peer.passed.len());
    ensure!(ours >= theirs, "{ours} tests pass, {theirs} over smbd");
    Ok(())
}

fn run_pjdfstest(subject: Subject, options: &str) -> Result<Outcome> {
    let stage = stage(subject)?;
    let scratch = stage.scratch.path();
    let commands = pjdfstest::prepare(scratch, DIRECTORY, &[])?;
    run(&stage, &uncached(options), &commands)?;
    pjdfstest::outcome(scratch)
}

/// Attributes come from the server. pjdfstest compares times of two moments, which cifs.ko
/// otherwise shows from its cache within a second.
fn uncached(options: &str) -> String {
    format!("{options},actimeo=0")
}

fn run_fsx(subject: Subject, options: &str, operations: u32) -> Result<()> {
    let stage = stage(subject)?;
    let commands = fsx::prepare(stage.scratch.path(), DIRECTORY, operations, 7)?;
    run(&stage, options, &commands)
}

fn run_workload(subject: Subject, workload: Workload, amount: u32) -> Result<()> {
    if (subject, workload) == (Subject::Samba, RSYNC) {
        let why = "cifs.ko and smbd 4.25 change no owners of symbolic links (EOPNOTSUPP)";
        return Err(Missing(why.to_owned()).into());
    }
    let stage = stage(subject)?;
    let scratch = stage.scratch.path();
    if workload == RSYNC {
        unix_tree::make(&scratch.join("tree"), 300, 0o777)?;
    }
    let commands = workload.prepare(scratch, DIRECTORY, amount)?;
    // SQLite exchanges shared locks for exclusive ones, which servers do not support.
    let options = format!("{POSIX},nobrl");
    run(&stage, &options, &commands)
}
