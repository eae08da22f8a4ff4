//! `cargo xtask bench-compare`: the comparison with the smbd of the lab.

use std::env;
use std::ffi::OsString;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, ensure};

use crate::{lab, workspace};

const BINARY: &str = "SMBEAM_BIN";

/// Builds the lab and the server, then builds and runs the comparison with `arguments`.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    lab::build()?;
    let status = Command::new("cargo")
        .args(["run", "--quiet", "--release", "--manifest-path"])
        .arg(workspace::workspace().join("Cargo.toml"))
        .args(["--package", "smbeam-bench-compare", "--"])
        .args(arguments)
        .env(BINARY, server()?)
        .status()
        .context("cannot run cargo")?;
    Ok(ExitCode::from(u8::from(!status.success())))
}

/// The binary to compare: `SMBEAM_BIN`, or an optimized build of the workspace.
fn server() -> Result<OsString> {
    if let Some(path) = env::var_os(BINARY) {
        return Ok(path);
    }
    let built = Command::new("cargo")
        .args(["build", "--release", "--package", "smbeam"])
        .current_dir(workspace::workspace())
        .status()
        .context("cannot run cargo")?;
    ensure!(built.success(), "the server does not build");
    Ok(workspace::target().join("release/smbeam").into())
}
