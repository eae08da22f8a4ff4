//! The rules of `deny.toml` for dependencies: licenses, duplicates and sources.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;
use smbeam_tests::lab;

use super::cargo::{cargo, check};
use super::counts::Counts;
use crate::process::quiet;
use crate::workspace::workspace;

/// The version of cargo-deny. A cached build of another version is not used.
const VERSION: &str = "0.20.2";

/// Checks the dependencies. Advisories need a database from the network and are not part of it.
///
/// # Errors
/// cargo-deny cannot be built or run.
pub(crate) fn run() -> Result<Counts> {
    let program = install()?;
    // Called by cargo's name for it, `cargo deny` would take another version from the path.
    let mut command = Command::new(program);
    let arguments = ["check", "licenses", "bans", "sources"];
    command.args(arguments).current_dir(workspace());
    check(&mut command)
}

/// The program, built once and kept beside the lab, where every clone finds it.
fn install() -> Result<PathBuf> {
    let root = lab::directory().join(format!("cargo-deny-{VERSION}"));
    let program = root.join("bin/cargo-deny");
    if !program.is_file() {
        println!("deny: building cargo-deny {VERSION}");
        let mut command = cargo(&["install", "--locked", "--quiet", "--root"]);
        command
            .arg(&root)
            .args(["--version", VERSION, "cargo-deny"]);
        quiet(&mut command)?;
    }
    Ok(program)
}
