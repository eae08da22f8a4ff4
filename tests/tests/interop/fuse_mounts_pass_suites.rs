//! Suites and programs of other projects work on a mount of `smbeam mount`: pjdfstest, fsx, dbench,
//! fio, stress-ng, git, SQLite, rsync and a build of a Rust program.
//!
//! A default run has short forms of the fast ones against smbeam.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use smbeam_tests::fuse::FuseMount;
use smbeam_tests::harness::Test;
use smbeam_tests::lab::Lab;
use smbeam_tests::scale::choose;
use smbeam_tests::scratch::Scratch;
use smbeam_tests::subject::{Plan, ROOT, Server, Subject};
use smbeam_tests::suites::workload::{self, Workload};
use smbeam_tests::suites::{fsx, pjdfstest};
use smbeam_tests::unix_tree;

/// The mount of an administrator: the kernel checks modes, and the server accepts every owner.
const OPTIONS: &str = "posix,allow_other,default_permissions,dev,suid";
/// Failures of pjdfstest that are known.
const KNOWN: &str = include_str!("../../suites/pjdfstest-fuse.txt");
/// The tests of a default run.
const PATTERNS: [&str; 2] = ["mkdir", "rmdir"];
/// Seconds that one script may take.
const TIME_LIMIT: &str = "840";
/// The sources of a program, and the commands that build it.
const BUILD: &str = include_str!("../../src/suites/scripts/build.sh");

/// A case, its function, and whether only full runs have it.
type Case = (&'static str, fn(Subject) -> Result<()>, bool);

const CASES: [Case; 9] = [
    ("pjdfstest", run_pjdfstest, false),
    ("fsx", run_fsx, false),
    ("git", |s| run(s, workload::GIT, choose(40, 20_000)), false),
    (
        "sqlite",
        |s| run(s, workload::SQLITE, choose(1000, 50_000)),
        false,
    ),
    ("fio", |s| run(s, workload::FIO, choose(2, 64)), false),
    ("rsync", run_rsync, false),
    ("dbench", |s| run(s, workload::DBENCH, choose(2, 60)), true),
    (
        "stress_ng",
        |s| run(s, workload::STRESS_NG, choose(2, 12)),
        true,
    ),
    ("a_rust_program_builds", run_build, true),
];

pub(crate) fn tests() -> Vec<Test> {
    let mut tests = Vec::new();
    for (name, case, is_long) in CASES {
        for (subject, word) in [(Subject::Smbeam, "smbeam"), (Subject::Samba, "samba")] {
            let test = Test::new(&format!("{name}_with_{word}"), move || case(subject));
            let is_short = !is_long && subject == Subject::Smbeam;
            tests.push(if is_short { test } else { test.long() });
        }
    }
    tests
}

/// A server, a mount of its share, and a local directory that the lab shares.
struct Rig {
    lab: Lab,
    mount: FuseMount,
    _server: Server,
    share: PathBuf,
    scratch: Scratch,
}

fn rig(subject: Subject) -> Result<Rig> {
    let lab = Lab::find_with_suites()?;
    let scratch = Scratch::new("suite")?;
    let share = scratch.open_directory("share")?;
    let mut plan = Plan::sharing(&share);
    plan.users.push(ROOT);
    plan.samba_globals
        .push("smb3 unix extensions = yes".to_owned());
    let server = Server::start_as(subject, Some(&lab), None, plan)?;
    let mount = FuseMount::new(&server, ROOT, &scratch.path().join("mount"), OPTIONS)?;
    Ok(Rig {
        lab,
        mount,
        _server: server,
        share,
        scratch,
    })
}

impl Rig {
    /// Runs the commands of a shell in the lab. Returns their output.
    fn shell(&self, commands: &str) -> Result<String> {
        let mut command = self.lab.command("timeout");
        command.args(["-s", "KILL", TIME_LIMIT, "sh", "-c", commands]);
        output(&mut command)
    }

    fn target(&self) -> String {
        self.mount.target().display().to_string()
    }
}

fn output(command: &mut Command) -> Result<String> {
    let output = command.output().context("cannot start the program")?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    ensure!(output.status.success(), "{}:\n{text}", output.status);
    Ok(text)
}

fn run(subject: Subject, workload: Workload, amount: u32) -> Result<()> {
    let mut rig = rig(subject)?;
    let commands = workload.prepare(rig.scratch.path(), &rig.target(), amount)?;
    print!("{}", rig.shell(&commands)?);
    ensure!(!rig.mount.has_ended(), "the mount has ended");
    Ok(())
}

fn run_pjdfstest(subject: Subject) -> Result<()> {
    let rig = rig(subject)?;
    let patterns: &[&str] = choose(&PATTERNS, &[]);
    let commands = pjdfstest::prepare(rig.scratch.path(), &rig.target(), patterns)?;
    rig.shell(&commands)?;
    let outcome = pjdfstest::outcome(rig.scratch.path())?;
    match subject {
        Subject::Smbeam => outcome.check(KNOWN),
        // smbd is a comparison: the figures count.
        Subject::Samba => {
            let (passed, failed) = (outcome.passed.len(), outcome.failed.len());
            println!("pjdfstest with smbd: {passed} passed, {failed} failed");
            Ok(())
        }
    }
}

fn run_fsx(subject: Subject) -> Result<()> {
    let rig = rig(subject)?;
    let operations = choose(1000, 100_000);
    let commands = fsx::prepare(rig.scratch.path(), &rig.target(), operations, 7)?;
    rig.shell(&commands)?;
    let local = std::fs::metadata(rig.share.join("fsx"))?.len();
    let mounted = std::fs::metadata(rig.mount.target().join("fsx"))?.len();
    ensure!(
        local == mounted,
        "fsx ends with {mounted} bytes, {local} on disk"
    );
    Ok(())
}

fn run_rsync(subject: Subject) -> Result<()> {
    let rig = rig(subject)?;
    let tree = rig.scratch.path().join("tree");
    // smbd 4.25 keeps no setuid, setgid and sticky bits.
    let bits = match subject {
        Subject::Smbeam => 0o7777,
        Subject::Samba => 0o777,
    };
    unix_tree::make(&tree, choose(20, 2000), bits)?;
    if subject == Subject::Samba {
        // Its target has `\`, so it has the tag NFS. smbd 4.25 refuses POSIX opens of such links.
        std::fs::remove_file(tree.join("link*"))?;
    }
    let commands = workload::RSYNC.prepare(rig.scratch.path(), &rig.target(), 0)?;
    rig.shell(&commands).map(drop)
}

fn run_build(subject: Subject) -> Result<()> {
    let rig = rig(subject)?;
    build(rig.mount.target(), rig.scratch.path())
}

/// Builds a program on the mount with the compiler of this machine.
fn build(directory: &Path, local: &Path) -> Result<()> {
    let mut command = Command::new("timeout");
    command.args(["-s", "KILL", TIME_LIMIT, "sh", "-c", BUILD, "build.sh"]);
    command.arg(directory).arg(local);
    let text = output(command.env_remove("CARGO_TARGET_DIR"))?;
    ensure!(text.contains("the sum is 820"), "{text}");
    Ok(())
}
