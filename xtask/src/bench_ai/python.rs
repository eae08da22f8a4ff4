//! The readers in Python: their environment, and the command that runs the training loop.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use smbeam_tests::python::{Python, stage_package};
use smbeam_tests::subject::{ALICE, Server};

use super::reader::{CONNECTIONS, Reader};
use super::workload::{READING_THREADS, STEPS, Workload};
use crate::workspace;

/// The training loop.
const LOADER: &str = include_str!("loader.py");
/// The variables with the interpreter and with the directory of the package.
const INTERPRETER: &str = "SMBEAM_BENCH_PYTHON";
const PACKAGES: &str = "PYTHONPATH";
/// The compiled module, as cargo names it.
const BUILT: &str = "lib_smbeam.so";
/// The order of the samples.
const SEED: u32 = 123;

/// A loop in Python that reads from a server.
pub(crate) struct Loop<'a> {
    pub(crate) reader: Reader,
    pub(crate) workload: Workload,
    pub(crate) is_quick: bool,
    pub(crate) server: &'a Server,
    pub(crate) url: &'a str,
    /// The directory that the server shares.
    pub(crate) files: &'a Path,
    pub(crate) label: &'a str,
    pub(crate) output: &'a Path,
}

/// Sets up the environment of the readers for `command`, with the package in `directory`.
pub(crate) fn prepare(command: &mut Command, directory: &Path) -> Result<()> {
    let python = Python::with_compared()?;
    let sources = workspace::workspace().join("apps/python");
    stage_package(&sources, &module()?, directory)?;
    command
        .env(INTERPRETER, python.path())
        .env(PACKAGES, directory)
        .env("PYTHONDONTWRITEBYTECODE", "1");
    Ok(())
}

impl Loop<'_> {
    /// The command that trains, and writes the result to the file of the output.
    pub(crate) fn command(&self, directory: &Path) -> Result<Command> {
        let training = self.workload.training(self.is_quick);
        let training = training.context("the loops in Python only train")?;
        let specification = json!({
            "reader": self.reader.name(),
            "url": self.url,
            "host": self.server.tcp.ip().to_string(),
            "port": self.server.tcp.port(),
            "user": ALICE.name,
            "share": "data",
            "files": self.files,
            "directory": format!("{}/train", self.workload.name()),
            "channels": CONNECTIONS,
            "label": self.label,
            "output": self.output,
            "workload": self.workload.name(),
            "accelerator": training.accelerator,
            "accelerators": training.accelerators,
            "round": training.round,
            "scale": training.scale,
            "record_bytes": training.record_bytes,
            "batch": training.batch,
            "computation_s": training.computation_s,
            "au_target_percent": training.au_target_percent,
            "workers": READING_THREADS,
            "prefetch_factor": 1,
            "steps": STEPS,
            "seed": SEED,
        });
        // Spawned processes import the main program from its file.
        let program = directory.join("loader.py");
        fs::write(&program, LOADER)?;
        let interpreter = env::var_os(INTERPRETER).context("no environment of Python")?;
        let mut command = Command::new(interpreter);
        command.arg(program).arg(specification.to_string());
        Ok(command)
    }
}

/// The compiled module: beside the program that `SMBEAM_BIN` names, or an optimized build.
fn module() -> Result<PathBuf> {
    if let Some(program) = env::var_os(workspace::BINARY) {
        let module = Path::new(&program).with_file_name(BUILT);
        ensure!(module.exists(), "{} does not exist", module.display());
        return Ok(module);
    }
    let built = Command::new("cargo")
        .args(["build", "--release", "--package", "smbeam-python"])
        .current_dir(workspace::workspace())
        .status()
        .context("cannot run cargo")?;
    ensure!(built.success(), "the Python module does not build");
    Ok(workspace::target().join("release").join(BUILT))
}
