//! `cargo xtask bench-compare`: the comparison with the lab's smbd, a crate outside the workspace.

use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result};

/// Builds the lab, then builds and runs the comparison with `arguments`.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    crate::lab::build()?;
    let manifest = crate::test::workspace().join("bench/compare/Cargo.toml");
    let status = Command::new("cargo")
        .args(["run", "--release", "--manifest-path"])
        .arg(manifest)
        .arg("--")
        .args(arguments)
        .status()
        .context("cannot run cargo")?;
    Ok(ExitCode::from(u8::from(!status.success())))
}
