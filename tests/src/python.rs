//! Clients written in Python, from the package index, in a separate environment in the lab's
//! directory, which is made once. It also holds the tests of one of the clients.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self, Command, Output};

use anyhow::{Context as _, Result, ensure};

use crate::lab::{self, Missing};

/// The installed packages. The name of the environment contains them: another version makes
/// another environment.
const PACKAGES: [&str; 6] = [
    SMBPROTOCOL,
    "impacket==0.13.1",
    "aioquic==1.7.2",
    "pysmb==1.2.15",
    "pytest==9.2.0",
    "pytest-mock==3.17.0",
];
const SMBPROTOCOL: &str = "smbprotocol==1.17.0";
/// The directory of the unpacked sources, in that of the environment.
const SOURCES: &str = "sources";
/// pip's time limit for the package index, in seconds, and its number of retries.
const PIP_LIMITS: [&str; 4] = ["--timeout", "15", "--retries", "1"];

/// An environment that holds the clients.
#[derive(Clone, Debug)]
pub struct Python {
    directory: PathBuf,
}

impl Python {
    /// The environment, which is made on first use.
    pub fn find() -> Result<Python> {
        let held = PACKAGES.join("-").replace("==", "-");
        let directory = lab::directory().join(format!("python-{held}"));
        if !directory.exists() {
            make(&directory)?;
        }
        Ok(Python { directory })
    }

    /// Runs a program text to its end. The error contains its output.
    pub fn run(&self, program: &str, arguments: &[&str]) -> Result<()> {
        let output = self.command(program, arguments).output();
        let output = output.context("cannot run Python")?;
        ensure!(output.status.success(), "{}", said(&output));
        Ok(())
    }

    /// The same as a command that has not started.
    pub fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = self.interpreter();
        command
            .args(["-W", "ignore", "-c", program])
            .args(arguments);
        command
    }

    /// Python as a command that has not started.
    pub fn interpreter(&self) -> Command {
        Command::new(self.directory.join("bin/python"))
    }

    /// The directory of the tests that come with smbprotocol.
    pub fn tests_of_smbprotocol(&self) -> PathBuf {
        let name = SMBPROTOCOL.replace("==", "-");
        self.directory.join(SOURCES).join(name).join("tests")
    }
}

/// Makes the environment under another name and renames it: other processes may do the same at
/// the same time, and an environment under the final name is complete.
fn make(directory: &Path) -> Result<()> {
    let draft = directory.with_extension(format!("draft-{}", process::id()));
    fs::create_dir_all(&draft)?;
    let made = install(&draft);
    if made.is_ok() && fs::rename(&draft, directory).is_ok() {
        return Ok(());
    }
    let _ = fs::remove_dir_all(&draft);
    made?;
    ensure!(directory.exists(), "cannot move {}", draft.display());
    Ok(())
}

fn install(draft: &Path) -> Result<(), Missing> {
    attempt(Command::new("python3").args(["-m", "venv"]).arg(draft))?;
    let pip = |action: &str| {
        let mut command = Command::new(draft.join("bin/python"));
        command
            .args(["-m", "pip", action, "--quiet"])
            .args(["--disable-pip-version-check", "--no-input"])
            .args(PIP_LIMITS);
        command
    };
    attempt(pip("install").args(PACKAGES))?;
    let sources = draft.join(SOURCES);
    attempt(
        pip("download")
            .args(["--no-deps", "--no-binary", ":all:", SMBPROTOCOL, "--dest"])
            .arg(&sources),
    )?;
    let archive = format!("{}.tar.gz", SMBPROTOCOL.replace("==", "-"));
    attempt(
        Command::new("tar")
            .current_dir(&sources)
            .args(["-xzf", &archive]),
    )
}

fn attempt(command: &mut Command) -> Result<(), Missing> {
    let missing = |reason: &str| Missing(format!("no Python clients: {reason}"));
    match command.output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(missing(said(&output).lines().last().unwrap_or_default())),
        Err(error) => Err(missing(&error.to_string())),
    }
}

fn said(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr].concat();
    String::from_utf8_lossy(&text).trim_end().into()
}
