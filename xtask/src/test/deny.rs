//! The rules of `deny.toml` for dependencies: licenses, duplicates and sources.

use std::process::Command;

use anyhow::Result;
use smbeam_tests::lab::Crate;

use super::cargo::check;
use super::counts::Counts;
use crate::crates;
use crate::workspace::workspace;

const CARGO_DENY: Crate = Crate {
    name: "cargo-deny",
    version: "0.20.2",
};

/// Checks the dependencies. Advisories need a database from the network and are not part of it.
///
/// # Errors
/// cargo-deny cannot be built or run.
pub(crate) fn run() -> Result<Counts> {
    let program = crates::install(&CARGO_DENY)?;
    // Called by cargo's name for it, `cargo deny` would take another version from the path.
    let mut command = Command::new(program);
    let arguments = ["check", "licenses", "bans", "sources"];
    command.args(arguments).current_dir(workspace());
    check(&mut command)
}
