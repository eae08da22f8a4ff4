//! `cargo xtask torture`: every test of smbtorture's suite smb2, on several file systems, and the
//! score beside Samba's.

mod score;
mod workers;

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use smbeam_tests::subject::Subject;
use smbeam_tests::torture::{self, KnownFailures, Listed};
use smbeam_tests::volume::{FileSystem, Volume};

use crate::host::{self, Tool};
use crate::{lab, workspace};
use score::Score;

/// Size of a file system in bytes. Its image is sparse.
const VOLUME_LEN: u64 = 8 << 30;

/// The options of the command.
struct Options {
    /// Beginnings of names of tests; empty: all tests.
    names: Vec<String>,
    file_systems: Vec<FileSystem>,
    /// Number of tests at a time, each against a server of its own.
    jobs: usize,
}

const USAGE: &str = "\
usage: cargo xtask torture [--jobs N] [--file-system ext4|btrfs|xfs|tmpfs]... [NAME]...

NAME is the beginning of the names of tests, such as smb2.streams. The default is every test, on
ext4 and on btrfs. The file systems are on loop devices, so the command needs root.";

/// Runs the tests on each file system and prints the scores. Fails if Samba passes a test that
/// fails here and that is not in the list of known failures.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    let options = parse(arguments)?;
    let tests = torture::listed()?;
    let is_wanted = |test: &Listed| {
        let mut names = options.names.iter();
        options.names.is_empty() || names.any(|name| test.name.starts_with(name.as_str()))
    };
    let tests: Vec<Listed> = tests.into_iter().filter(is_wanted).collect();
    ensure!(!tests.is_empty(), "no test has such a name");
    let program = workspace::server()?;
    let lab = lab::build()?;
    let known = KnownFailures::of(Subject::Smbeam)?;
    let mut scores = Vec::new();
    for file_system in &options.file_systems {
        let start = Instant::now();
        let tool = file_system.tool();
        let tool = tool.map(|(program, package)| Tool { program, package });
        host::ensure(tool.as_slice())?;
        let volume = Volume::new(*file_system, VOLUME_LEN)?;
        println!("torture: {} tests on {}", tests.len(), file_system.name());
        let verdicts = workers::run(&lab, program.as_ref(), volume.path(), &tests, options.jobs)?;
        let score = Score::new(file_system.name(), &tests, verdicts, start.elapsed());
        println!("{}", score.table());
        scores.push(score);
    }
    let mut is_good = true;
    for score in &scores {
        println!("{}", score.summary(&known));
        is_good &= score.unexplained(&known).is_empty();
    }
    Ok(if is_good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn parse(arguments: &[String]) -> Result<Options> {
    let mut options = Options {
        names: Vec::new(),
        file_systems: Vec::new(),
        jobs: 4,
    };
    let mut arguments = arguments.iter().map(String::as_str);
    while let Some(argument) = arguments.next() {
        match argument {
            "--jobs" => {
                let jobs = arguments.next().context("--jobs needs a number")?;
                options.jobs = jobs.parse().context("--jobs needs a number")?;
                ensure!((1..=64).contains(&options.jobs), "--jobs is from 1 to 64");
            }
            "--file-system" => {
                let name = arguments.next().context("--file-system needs a name")?;
                let named = FileSystem::ALL.iter().find(|it| it.name() == name);
                let named = named.with_context(|| format!("no file system {name}"))?;
                options.file_systems.push(*named);
            }
            name if name.starts_with("smb2") => options.names.push(name.to_owned()),
            _ => bail!("{USAGE}"),
        }
    }
    if options.file_systems.is_empty() {
        options.file_systems = vec![FileSystem::Ext4, FileSystem::Btrfs];
    }
    Ok(options)
}
