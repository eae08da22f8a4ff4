//! `cargo xtask bench-compare`: the comparison with the smbd of the lab.

use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result};

use crate::{lab, workspace};

/// Builds the lab and the server, then builds and runs the comparison with `arguments`.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    lab::build()?;
    let status = Command::new("cargo")
        .args(["run", "--quiet", "--release", "--manifest-path"])
        .arg(workspace::workspace().join("Cargo.toml"))
        .args(["--package", "smbeam-bench-compare", "--"])
        .args(arguments)
        .env(workspace::BINARY, workspace::server()?)
        .status()
        .context("cannot run cargo")?;
    Ok(ExitCode::from(u8::from(!status.success())))
}
