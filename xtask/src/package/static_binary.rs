//! The static binary, for systems without the C library of Debian 12 or newer. Its `--version`
//! names what it cannot do.

use std::fs;
use std::process::Command;

use anyhow::{Result, ensure};

use super::stage::{Stage, directory};
use super::tools;
use crate::host::{self, Tool};
use crate::process::quiet;
use crate::workspace::{target, workspace};

const TOOLS: &[Tool] = &[Tool {
    program: "musl-gcc",
    package: "musl-tools",
}];

/// Makes `smbeam-VERSION-ARCHITECTURE-static`.
pub(super) fn make(stage: &Stage) -> Result<String> {
    host::ensure(TOOLS)?;
    let architecture = std::env::consts::ARCH;
    let triple = format!("{architecture}-unknown-linux-musl");
    quiet(Command::new("rustup").args(["target", "add", &triple]))?;
    let mut build = tools::AUDITABLE.command()?;
    let built = build
        .args(["build", "--profile", "dist", "--target", &triple])
        .args(["--package", "smbeam", "--bin", "smbeam"])
        .current_dir(workspace())
        .status()?;
    ensure!(built.success(), "the static smbeam does not build");
    let name = format!("smbeam-{}-{architecture}-static", stage.version);
    let binary = directory().join(&name);
    fs::copy(target().join(&triple).join("dist/smbeam"), &binary)?;
    let version = quiet(Command::new(&binary).arg("--version"))?;
    ensure!(version.contains("static"), "not a static binary: {version}");
    Ok(name)
}
