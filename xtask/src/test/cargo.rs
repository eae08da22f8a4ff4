//! Calling cargo for the workspace.

use std::process::Command;

use anyhow::{Context as _, Result};

use super::counts::Counts;
use crate::workspace::workspace;

/// A cargo command for the workspace.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command
        .args(arguments)
        .current_dir(workspace())
        .env("RUSTDOCFLAGS", "-D warnings");
    command
}

/// Runs a cargo command that passes or fails.
pub(crate) fn check(command: &mut Command) -> Result<Counts> {
    let status = command.status().context("cannot run cargo")?;
    Ok(Counts::of_check(status.success()))
}
