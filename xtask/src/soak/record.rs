//! The record of all soaks: a file of the repository, one row per run.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use crate::process::quiet;
use crate::table;
use crate::workspace::workspace;

/// The record.
const FILE: &str = "tests/soak.toml";
const HEAD: &str = "# Each run of `cargo xtask soak`, the newest last. A run starts at the seed \
    after the last one.\n";

#[derive(Default, Deserialize)]
struct Record {
    #[serde(default)]
    run: Vec<Row>,
}

/// A row that is appended to the text of a record.
#[derive(Serialize)]
struct Added<'a> {
    run: [&'a Row; 1],
}

/// A run.
#[derive(Deserialize, Serialize)]
pub(super) struct Row {
    /// The commit, with `+` behind it where the tree had changes.
    pub(super) commit: String,
    /// The day, as `2026-11-25`.
    pub(super) date: String,
    /// Hours without building.
    pub(super) hours: f64,
    pub(super) seeds: Seeds,
    pub(super) files: Files,
    pub(super) targets: Vec<Target>,
}

/// Seeds of the simulator.
#[derive(Clone, Copy, Deserialize, Serialize)]
pub(super) struct Seeds {
    /// The first seed.
    pub(super) first: u64,
    /// The seed after the last one.
    pub(super) next: u64,
    /// Tests that failed.
    pub(super) failed: u64,
}

/// Cases with large files.
#[derive(Clone, Copy, Default, Deserialize, Serialize)]
pub(super) struct Files {
    pub(super) passed: u64,
    pub(super) failed: u64,
}

/// A fuzz target.
#[derive(Deserialize, Serialize)]
pub(super) struct Target {
    pub(super) name: String,
    /// Inputs that were run.
    pub(super) runs: u64,
    /// Inputs in the corpora: the committed one and the one that grows beside the lab.
    pub(super) corpus: u64,
    /// 1 where an input made it fail.
    pub(super) failed: u64,
}

impl Row {
    /// What failed, of all kinds.
    pub(super) fn failed(&self) -> u64 {
        let targets: u64 = self.targets.iter().map(|target| target.failed).sum();
        self.seeds.failed + self.files.failed + targets
    }

    /// The row for people.
    pub(super) fn table(&self) -> String {
        let Seeds {
            first,
            next,
            failed,
        } = self.seeds;
        let mut rows = vec![
            row(
                &format!("seeds {first} to {}", next - 1),
                next - first,
                failed,
            ),
            row(
                "cases with large files",
                self.files.passed,
                self.files.failed,
            ),
        ];
        for target in &self.targets {
            let name = format!("fuzz {} (corpus {})", target.name, target.corpus);
            rows.push(row(&name, target.runs, target.failed));
        }
        table::render(&["soak", "runs", "failed"], &rows)
    }
}

fn row(name: &str, runs: u64, failed: u64) -> Vec<String> {
    vec![name.into(), runs.to_string(), failed.to_string()]
}

fn path() -> PathBuf {
    workspace().join(FILE)
}

fn load() -> Result<Record> {
    match fs::read_to_string(path()) {
        Ok(text) => toml::from_str(&text).context(FILE),
        Err(_) => Ok(Record::default()),
    }
}

/// The first seed that no run has.
pub(super) fn next_seed() -> Result<u64> {
    let rows = load()?.run;
    Ok(rows.iter().map(|row| row.seeds.next).max().unwrap_or(0))
}

/// Writes the record with one more row.
pub(super) fn append(row: &Row) -> Result<()> {
    let row = toml::to_string(&Added { run: [row] })?;
    let before = fs::read_to_string(path()).unwrap_or_else(|_| HEAD.into());
    fs::write(path(), format!("{before}\n{row}")).with_context(|| format!("cannot write {FILE}"))
}

/// The commit of the tree.
pub(super) fn commit() -> Result<String> {
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        quiet(command.args(arguments).current_dir(workspace()))
    };
    let commit = git(&["rev-parse", "--short", "HEAD"])?.trim().to_owned();
    let is_clean = git(&["status", "--porcelain"])?.trim().is_empty();
    Ok(if is_clean {
        commit
    } else {
        format!("{commit}+")
    })
}

/// The day in UTC.
pub(super) fn date() -> Result<String> {
    let mut command = Command::new("date");
    Ok(quiet(command.args(["-u", "+%F"]))?.trim().to_owned())
}
