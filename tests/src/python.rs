//! Environments of Python with packages from the package index, in the lab's directory. Each is
//! made once: one with clients of SMB, which also holds the tests of one of them, one with the
//! programs that use the package of this project, and one for the comparison of readers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self, Command, Output};

use anyhow::{Context as _, Result, ensure};

use crate::lab::{self, Missing};

/// The clients. The name of an environment contains its packages: another version makes another
/// environment.
const CLIENTS: [&str; 6] = [
    SMBPROTOCOL,
    "impacket==0.13.1",
    "aioquic==1.7.2",
    "pysmb==1.2.15",
    "pytest==9.2.0",
    "pytest-mock==3.17.0",
];
/// The packages that the tests of the Python package import.
const PROGRAMS: [&str; 8] = [
    "pytest==9.2.0",
    "fsspec==2026.9.0",
    "pandas==3.1.1",
    "pyarrow==26.0.1",
    "zarr==3.1.6",
    "xarray==2026.9.0",
    "dask[dataframe]==2026.8.0",
    "datasets==5.2.0",
];
/// What `cargo xtask bench-ai` compares the Python package with.
const COMPARED: [&str; 2] = ["fsspec==2026.9.0", SMBPROTOCOL];
const SMBPROTOCOL: &str = "smbprotocol==1.17.0";
/// The directory of the unpacked sources, in that of the environment.
const SOURCES: &str = "sources";
/// pip's time limit for the package index, in seconds, and its number of retries.
const PIP_LIMITS: [&str; 4] = ["--timeout", "15", "--retries", "1"];

/// The compiled module of the Python package, as Python imports it.
const MODULE: &str = "_smbeam.abi3.so";

/// Puts the package `smbeam` into `directory`, as an installation has it: from the sources of the
/// package at `sources`, and the compiled `module`.
pub fn stage_package(sources: &Path, module: &Path, directory: &Path) -> Result<()> {
    let package = directory.join("smbeam");
    copy_files(&sources.join("python/smbeam"), &package)?;
    fs::copy(module, package.join(MODULE))
        .with_context(|| format!("cannot copy {}", module.display()))?;
    Ok(())
}

/// Copies the files of a directory, without directories below it, into the new directory `to`.
pub fn copy_files(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir(to).with_context(|| format!("cannot make {}", to.display()))?;
    let entries = fs::read_dir(from).with_context(|| format!("cannot list {}", from.display()))?;
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

/// An environment that holds the clients.
#[derive(Clone, Debug)]
pub struct Python {
    directory: PathBuf,
}

impl Python {
    /// The environment with clients, which is made on first use.
    pub fn find() -> Result<Python> {
        Self::with(&CLIENTS, &[SMBPROTOCOL])
    }

    /// The environment with programs that use the Python package, which is made on first use.
    pub fn with_programs() -> Result<Python> {
        Self::with(&PROGRAMS, &[])
    }

    /// The environment with the packages for the comparison of readers, which is made on first use.
    pub fn with_compared() -> Result<Python> {
        Self::with(&COMPARED, &[])
    }

    /// An environment with packages, and with the sources of some of them.
    fn with(packages: &[&str], sources: &[&str]) -> Result<Python> {
        let held = packages.join("-").replace("==", "-");
        let directory = lab::directory().join(format!("python-{held}"));
        if !directory.exists() {
            make(&directory, packages, sources)?;
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
        Command::new(self.path())
    }

    /// The path of the interpreter.
    pub fn path(&self) -> PathBuf {
        self.directory.join("bin/python")
    }

    /// The directory of the tests that come with smbprotocol.
    pub fn tests_of_smbprotocol(&self) -> PathBuf {
        let name = SMBPROTOCOL.replace("==", "-");
        self.directory.join(SOURCES).join(name).join("tests")
    }
}

/// Makes the environment under another name and renames it: other processes may do the same at
/// the same time, and an environment under the final name is complete.
fn make(directory: &Path, packages: &[&str], sources: &[&str]) -> Result<()> {
    let draft = directory.with_extension(format!("draft-{}", process::id()));
    fs::create_dir_all(&draft)?;
    let made = install(&draft, packages, sources);
    if made.is_ok() && fs::rename(&draft, directory).is_ok() {
        return Ok(());
    }
    let _ = fs::remove_dir_all(&draft);
    made?;
    ensure!(directory.exists(), "cannot move {}", draft.display());
    Ok(())
}

fn install(draft: &Path, packages: &[&str], sources: &[&str]) -> Result<(), Missing> {
    attempt(Command::new("python3").args(["-m", "venv"]).arg(draft))?;
    let pip = |action: &str| {
        let mut command = Command::new(draft.join("bin/python"));
        command
            .args(["-m", "pip", action, "--quiet"])
            .args(["--disable-pip-version-check", "--no-input"])
            .args(PIP_LIMITS);
        command
    };
    attempt(pip("install").args(packages))?;
    let directory = draft.join(SOURCES);
    for package in sources {
        attempt(
            pip("download")
                .args(["--no-deps", "--no-binary", ":all:", package, "--dest"])
                .arg(&directory),
        )?;
        let archive = format!("{}.tar.gz", package.replace("==", "-"));
        attempt(
            Command::new("tar")
                .current_dir(&directory)
                .args(["-xzf", &archive]),
        )?;
    }
    Ok(())
}

fn attempt(command: &mut Command) -> Result<(), Missing> {
    let missing = |reason: &str| Missing(format!("no packages of Python: {reason}"));
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
