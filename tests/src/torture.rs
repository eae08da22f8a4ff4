//! smbtorture's tests, one by one, and the list of those that are known to fail.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use crate::lab::Lab;
use crate::scratch::Scratch;
use crate::subject::{ALICE, Server, Subject};
use crate::wait;

/// How long one test may take.
const TIME_LIMIT: Duration = Duration::from_secs(180);
/// Number of the last lines of a failing test's output that the error shows.
const LINES_SHOWN: usize = 40;

/// The file that some tests work on.
const FILE: &str = "torture.file";
/// The tests that need options, with these options.
const OPTIONS: [(&str, &[&str]); 4] = [
    // Windows and this server write within a compound; Samba answers later.
    (
        "smb2.compound_async.write_write",
        &["--option=torture:smbd=no"],
    ),
    (
        "smb2.bench.read",
        &[
            "--option=torture:timelimit=2",
            "--option=torture:nprocs=2",
            "--option=torture:qdepth=4",
            "--option=torture:io_size=65536",
        ],
    ),
    (
        "smb2.set-sparse-ioctl",
        &["--option=torture:filename=torture.file"],
    ),
    (
        "smb2.zero-data-ioctl",
        &[
            "--option=torture:filename=torture.file",
            "--option=torture:offset=4096",
            "--option=torture:beyond_final_zero=8192",
        ],
    ),
];

/// The outcome of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It passed.
    Passed,
    /// It failed, was skipped by smbtorture or took too long; with the end of its output.
    Failed(String),
}

/// The tests that are known to fail, with their reasons.
#[derive(Clone, Debug, Default)]
pub struct KnownFailures {
    reasons: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FailureFile {
    #[serde(default)]
    failure: Vec<Failure>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Failure {
    test: String,
    reason: String,
}

impl KnownFailures {
    /// The list in `known-failures.toml`; empty when the subject is Samba itself.
    pub fn of(subject: Subject) -> Result<KnownFailures> {
        match subject {
            Subject::Samba => Ok(KnownFailures::default()),
            Subject::Smbeam => Self::read("known-failures.toml"),
        }
    }

    /// The list of [`of`](Self::of), and that in `gmac-channels.toml`: the tests that fail because
    /// the server encrypts sessions of several channels by default.
    pub fn with_default_channels() -> Result<KnownFailures> {
        let mut all = Self::of(Subject::Smbeam)?;
        all.reasons
            .extend(Self::read("gmac-channels.toml")?.reasons);
        Ok(all)
    }

    fn read(name: &str) -> Result<KnownFailures> {
        let path = data_directory().join(name);
        parse_failures(&read(&path)?).with_context(|| path.display().to_string())
    }

    /// The tests in the list.
    pub fn tests(&self) -> impl Iterator<Item = &str> {
        self.reasons.keys().map(String::as_str)
    }

    /// Fails unless `verdict` is the outcome that the list expects of `test`.
    pub fn judge(&self, test: &str, verdict: Verdict) -> Result<()> {
        match (self.reasons.get(test), verdict) {
            (None, Verdict::Passed) => Ok(()),
            (Some(reason), Verdict::Failed(_)) => {
                println!("known failure of {test}: {reason}");
                Ok(())
            }
            (None, Verdict::Failed(output)) => bail!("{output}"),
            (Some(_), Verdict::Passed) => {
                bail!("it passes now: remove it from the list in tests/torture")
            }
        }
    }
}

/// A test of smbtorture, with Samba's result.
#[derive(Clone, Debug)]
pub struct Listed {
    /// The name, such as `smb2.streams.dir`.
    pub name: String,
    /// Samba's result: `pass`, `fail`, `skip`, or `left out` for a test that was not run.
    samba: String,
}

impl Listed {
    /// Whether Samba passes the test.
    pub fn samba_passes(&self) -> bool {
        self.samba == "pass"
    }

    /// Whether the test is not to be run: it measures, scans, or waits for a person.
    pub fn is_left_out(&self) -> bool {
        self.samba == "left out"
    }

    /// The group of the test, such as `streams` for `smb2.streams.dir`.
    pub fn group(&self) -> &str {
        self.name.split('.').nth(1).unwrap_or_default()
    }
}

/// All tests of the suite smb2, in the order of the list `expected.tsv`.
pub fn listed() -> Result<Vec<Listed>> {
    let text = read(&data_directory().join("expected.tsv"))?;
    let rows = text
        .lines()
        .skip(1)
        .filter_map(|line| line.split_once('\t'));
    let listed = rows.map(|(name, samba)| Listed {
        name: name.to_owned(),
        samba: samba.to_owned(),
    });
    Ok(listed.collect())
}

/// The tests that Samba passes, in the order of the list.
pub fn passed_by_samba() -> Result<Vec<String>> {
    let passed = listed()?.into_iter().filter(Listed::samba_passes);
    Ok(passed.map(|test| test.name).collect())
}

/// Puts the file of a test into the shared directory.
pub fn prepare(test: &str, directory: &Path) -> Result<()> {
    if OPTIONS.iter().any(|(name, _)| *name == test) {
        let path = directory.join(FILE);
        fs::write(&path, [7; 16_384])?;
        chown(&path, Some(ALICE.id), None)?;
    }
    Ok(())
}

/// Runs one test of smbtorture against the share `data` of `server`, over TCP.
pub fn run(lab: &Lab, server: &Server, test: &str) -> Result<Verdict> {
    run_on("data", lab, server, test)
}

/// The same against the share `direct`.
pub fn run_past_the_cache(lab: &Lab, server: &Server, test: &str) -> Result<Verdict> {
    run_on("direct", lab, server, test)
}

fn run_on(share: &str, lab: &Lab, server: &Server, test: &str) -> Result<Verdict> {
    let place = [
        format!("//{}/{share}", server.tcp.ip()),
        format!("-p{}", server.tcp.port()),
    ];
    run_at(lab, &place, test)
}

/// The same over QUIC, without verification of the certificate. It uses a name: Samba takes no
/// address over QUIC.
pub fn run_over_quic(lab: &Lab, server: &Server, test: &str) -> Result<Verdict> {
    let port = server.address("quic").port();
    let place = [
        "//smbeam.test/data".to_owned(),
        format!("--option=client smb transports=quic:{port}"),
        "--option=tls verify peer=no_check".to_owned(),
    ];
    run_at(lab, &place, test)
}

fn run_at(lab: &Lab, place: &[String], test: &str) -> Result<Verdict> {
    let scratch = Scratch::new("torture")?;
    let path = scratch.path().join("output");
    let output = fs::File::create(&path)?;
    let mut child = lab
        .command_under(None, "smbtorture")
        .args(place)
        .args(["-U", &format!("{}%{}", ALICE.name, ALICE.password)])
        .arg(format!(
            "--option=torture:localdir={}",
            scratch.path().display()
        ))
        .args(options(test))
        .arg(test)
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        .spawn()
        .context("cannot enter the lab")?;
    let status = wait::for_end(&mut child, TIME_LIMIT)?;
    let text = String::from_utf8_lossy(&fs::read(&path)?).into_owned();
    Ok(match status {
        Some(status) if status.success() && has_success(&text) => Verdict::Passed,
        Some(status) => Verdict::Failed(format!("{status}\n{}", end_of(&text))),
        None => Verdict::Failed(format!("killed after {TIME_LIMIT:?}\n{}", end_of(&text))),
    })
}

fn options(test: &str) -> &'static [&'static str] {
    let found = OPTIONS.iter().find(|(name, _)| *name == test);
    found.map_or(&[], |(_, options)| options)
}

/// smbtorture also succeeds when every test skips itself or none has the name.
fn has_success(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("success: "))
}

fn end_of(text: &str) -> String {
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with("time: "))
        .collect();
    lines[lines.len().saturating_sub(LINES_SHOWN)..].join("\n")
}

fn parse_failures(text: &str) -> Result<KnownFailures> {
    let FailureFile { failure } = toml::from_str(text)?;
    let mut reasons = BTreeMap::new();
    for Failure { test, reason } in failure {
        if reason.trim().is_empty() {
            bail!("{test} has no reason");
        }
        if reasons.insert(test.clone(), reason).is_some() {
            bail!("{test} is listed twice");
        }
    }
    Ok(KnownFailures { reasons })
}

fn data_directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("torture")
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::{Verdict, parse_failures};

    const LIST: &str = "[[failure]]\ntest = \"smb2.a\"\nreason = \"no leases yet\"\n";

    #[test]
    fn a_listed_test_must_fail_and_others_must_pass() {
        let list = parse_failures(LIST).expect("the list is well formed");
        let failed = || Verdict::Failed("output".into());
        assert!(list.judge("smb2.a", failed()).is_ok());
        assert!(list.judge("smb2.b", Verdict::Passed).is_ok());
        assert!(list.judge("smb2.a", Verdict::Passed).is_err());
        assert!(list.judge("smb2.b", failed()).is_err());
    }

    #[test]
    fn every_listed_test_has_one_reason() {
        assert!(parse_failures(&LIST.replace("no leases yet", " ")).is_err());
        assert!(parse_failures(&format!("{LIST}{LIST}")).is_err());
    }
}
