//! Each fuzz target in turn, on a corpus that grows beside the lab.
//!
//! The targets are built by the stable compiler: libFuzzer needs the counters of LLVM's coverage
//! pass and nothing of cargo-fuzz. The code under test has no unsafe block, so that no sanitizer
//! of memory is part of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use smbeam_tests::lab;

use super::record::Target;
use crate::host::{self, Tool};
use crate::workspace::{target, workspace};

/// The platform, named so that build scripts are built without the counters.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";
/// Coverage for libFuzzer, and the assertions of a debug build.
const FLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Ccodegen-units=1 -Cdebug-assertions -Coverflow-checks";
/// libFuzzer is written in C++.
const TOOLS: &[Tool] = &[Tool {
    program: "c++",
    package: "g++",
}];
/// Longest input in bytes: the largest frame that the targets decode, and some more.
const MAX_INPUT: u32 = 1 << 17;

/// A target that was built.
pub(super) struct Built {
    name: String,
    program: PathBuf,
}

/// Builds all targets.
pub(super) fn build() -> Result<Vec<Built>> {
    host::ensure(TOOLS)?;
    let directory = workspace().join("fuzz");
    let output = target().join("fuzz");
    let status = Command::new("cargo")
        .args(["build", "--release", "--target", PLATFORM, "--target-dir"])
        .arg(&output)
        .current_dir(&directory)
        .env("RUSTFLAGS", FLAGS)
        .status()
        .context("cannot run cargo")?;
    ensure!(status.success(), "the fuzz targets do not build");
    let mut targets = Vec::new();
    for entry in fs::read_dir(directory.join("corpus"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let program = output.join(PLATFORM).join("release").join(&name);
        ensure!(program.is_file(), "the corpus {name} has no target");
        targets.push(Built { name, program });
    }
    targets.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(targets)
}

/// Runs the targets in turn, each for its share of the time.
pub(super) fn run(targets: &[Built], time: Duration) -> Result<Vec<Target>> {
    let share = time / u32::try_from(targets.len().max(1))?;
    targets
        .iter()
        .map(|target| run_one(target, share))
        .collect()
}

fn run_one(built: &Built, time: Duration) -> Result<Target> {
    let Built { name, program } = built;
    let committed = workspace().join("fuzz/corpus").join(name);
    let grown = lab::directory().join("corpus").join(name);
    let findings = target().join("xtask/findings").join(name);
    for directory in [&grown, &findings] {
        fs::create_dir_all(directory)
            .with_context(|| format!("cannot create {}", directory.display()))?;
    }
    println!("fuzz: {name} for {:.0} s", time.as_secs_f64());
    let output = Command::new(program)
        .arg(format!("-max_total_time={}", time.as_secs().max(1)))
        .arg(format!("-max_len={MAX_INPUT}"))
        .arg(format!("-artifact_prefix={}/", findings.display()))
        .arg("-print_final_stats=1")
        // libFuzzer writes what it finds into the first directory.
        .args([&grown, &committed])
        .output()
        .with_context(|| format!("cannot run {}", program.display()))?;
    let text = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        println!(
            "{text}\nfuzz: {name} found something: {}",
            findings.display()
        );
    }
    Ok(Target {
        name: name.clone(),
        runs: runs(&text),
        corpus: count(&grown)? + count(&committed)?,
        failed: u64::from(!output.status.success()),
    })
}

/// The number of inputs that libFuzzer ran, from its statistics.
fn runs(text: &str) -> u64 {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    line.and_then(|number| number.trim().parse().ok())
        .unwrap_or(0)
}

fn count(directory: &Path) -> Result<u64> {
    let entries = fs::read_dir(directory).with_context(|| directory.display().to_string())?;
    Ok(entries.count() as u64)
}

#[cfg(test)]
mod tests {
    use super::runs;

    #[test]
    fn the_number_of_runs_is_a_statistic() {
        let text = "Done 12 runs\nstat::number_of_executed_units: 4711\n";
        assert_eq!((runs(text), runs("")), (4711, 0));
    }
}
