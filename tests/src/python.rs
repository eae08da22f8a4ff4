//! Clients written in Python, from the package index, in an environment of their own that lies in
//! the lab's folder and is made once.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self, Command, Output};

use anyhow::{Context as _, Result, ensure};

use crate::lab::{self, Missing};

/// What is installed. The name of the environment tells what it holds: another version makes
/// another one.
const PACKAGES: [&str; 4] = [
    "smbprotocol==1.17.0",
    "impacket==0.13.1",
    "aioquic==1.7.2",
    "pysmb==1.2.15",
];
/// The environment's folder in that of the lab.
const NAME: &str = "python-smbprotocol-1.17.0-impacket-0.13.1-aioquic-1.7.2-pysmb-1.2.15";
/// Seconds that the package index may be silent, and how often it is asked again.
const PATIENCE: [&str; 4] = ["--timeout", "15", "--retries", "1"];

/// An environment that holds the clients.
#[derive(Clone, Debug)]
pub struct Python {
    folder: PathBuf,
}

impl Python {
    /// The environment, made if there is none yet.
    pub fn find() -> Result<Python> {
        let folder = lab::folder().join(NAME);
        if !folder.exists() {
            make(&folder)?;
        }
        Ok(Python { folder })
    }

    /// Runs a program text to its end; what it says is the error when it fails.
    pub fn run(&self, program: &str, arguments: &[&str]) -> Result<()> {
        let output = self.command(program, arguments).output();
        let output = output.context("cannot run Python")?;
        ensure!(output.status.success(), "{}", said(&output));
        Ok(())
    }

    /// The same yet to be run.
    pub fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.folder.join("bin/python"));
        command
            .args(["-W", "ignore", "-c", program])
            .args(arguments);
        command
    }
}

/// Makes the environment beside its place first: others may do the same at the same time, and
/// what is in its place is whole.
fn make(folder: &Path) -> Result<()> {
    let draft = folder.with_extension(format!("draft-{}", process::id()));
    fs::create_dir_all(&draft)?;
    let made = install(&draft);
    if made.is_ok() && fs::rename(&draft, folder).is_ok() {
        return Ok(());
    }
    let _ = fs::remove_dir_all(&draft);
    made?;
    ensure!(folder.exists(), "cannot move {}", draft.display());
    Ok(())
}

fn install(draft: &Path) -> Result<(), Missing> {
    attempt(Command::new("python3").args(["-m", "venv"]).arg(draft))?;
    attempt(
        Command::new(draft.join("bin/python"))
            .args(["-m", "pip", "install", "--quiet"])
            .args(["--disable-pip-version-check", "--no-input"])
            .args(PATIENCE)
            .args(PACKAGES),
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
