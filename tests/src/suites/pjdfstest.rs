//! pjdfstest: a test for each rule of POSIX about calls on files.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};

use super::known::Known;
use crate::lab::PJDFSTEST;

/// The features that Linux has, and users of the lab. The time between two changes is greater than
/// the resolution of times, 100 ns in SMB, and than a tick of the kernel, which gives times.
const CONFIGURATION: &str = "\
[features]
posix_fallocate = {}
rename_ctime = {}
stat_st_birthtime = {}
utime_now = {}
utimensat = {}
[settings]
naptime = 0.02
[dummy_auth]
entries = [[\"daemon\", \"daemon\"], [\"alice\", \"alice\"], [\"bob\", \"bob\"]]
";
/// The program, its configuration and its output, in a directory that the lab shares.
const PROGRAM: &str = "pjdfstest";
const SETTINGS: &str = "pjdfstest.toml";
const OUTPUT: &str = "pjdfstest.out";

/// The outcome of a run.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The tests that passed.
    pub passed: BTreeSet<String>,
    /// The tests that failed, with the reasons.
    pub failed: BTreeMap<String, String>,
}

/// Copies the program to `scratch`, and returns the command of a shell that runs it on `directory`.
/// It runs the tests with one of `patterns` in their names; none: all.
pub fn prepare(scratch: &Path, directory: &str, patterns: &[&str]) -> Result<String> {
    let program = scratch.join(PROGRAM);
    let built = PJDFSTEST.program();
    fs::copy(&built, &program).with_context(|| format!("cannot copy {}", built.display()))?;
    let settings = scratch.join(SETTINGS);
    fs::write(&settings, CONFIGURATION)?;
    // A test that fails is no failure of the run.
    Ok(format!(
        "{} -c {} -p {directory} {} > {} 2>&1 || test $? = 1\n",
        program.display(),
        settings.display(),
        patterns.join(" "),
        scratch.join(OUTPUT).display()
    ))
}

/// The outcome of the command that [`prepare`] returned.
pub fn outcome(scratch: &Path) -> Result<Outcome> {
    let output = fs::read(scratch.join(OUTPUT)).context("pjdfstest has no output")?;
    let text = String::from_utf8_lossy(&output);
    parse(&text).with_context(|| format!("pjdfstest:\n{text}"))
}

fn parse(text: &str) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if line.starts_with("Summary:") {
            ensure!(!outcome.passed.is_empty(), "no test passed");
            return Ok(outcome);
        }
        let Some((name, verdict)) = line.split_once(' ') else {
            continue;
        };
        match verdict.trim() {
            "ok" => {
                outcome.passed.insert(name.to_owned());
            }
            "FAILED" => {
                let reason = lines.next_if(|line| line.starts_with('\t'));
                let reason = reason.unwrap_or_default().trim().to_owned();
                outcome.failed.insert(name.to_owned(), reason);
            }
            _ => {}
        }
    }
    bail!("the run has no end")
}

impl Outcome {
    /// Fails if a test failed that `list` does not contain. Prints the entries that pass.
    pub fn check(&self, list: &str) -> Result<()> {
        let failed = self.failed.keys().cloned().collect();
        let verdict = Known::parse(list)?.judge(&self.passed, &failed);
        let (passed, failed) = (self.passed.len(), failed.len());
        println!("pjdfstest: {passed} passed, {failed} failed");
        for name in &verdict.obsolete {
            println!("passes now, remove it from the list: {name}");
        }
        let mut text = String::new();
        for name in &verdict.unexpected {
            let _ = writeln!(text, "{name} # {}", self.failed[name]);
        }
        ensure!(
            text.is_empty(),
            "{} failures that are not in the list:\n{text}",
            verdict.unexpected.len()
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn the_outcome_has_names_and_reasons() {
        let text = "chmod::a     ok\nlink::b    FAILED\n\tleft 1, right 2\n\tmore\n\
            open::c     skipped\n\trequires root\n\nSummary: 1 failed, 1 skipped, 1 passed\n";
        let outcome = parse(text).expect("a whole run");
        assert_eq!(Vec::from_iter(outcome.passed), ["chmod::a"]);
        assert_eq!(outcome.failed["link::b"], "left 1, right 2");
        assert_eq!(outcome.failed.len(), 1);
        assert!(parse("chmod::a     ok\n").is_err());
        assert!(parse("Summary: 0 failed\n").is_err());
    }
}
