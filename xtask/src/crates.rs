//! Programs from crates.io, which are built once and kept beside the lab.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;
use smbeam_tests::lab::Crate;

use crate::process::quiet;

/// The program of `krate`, which is built if it is missing.
///
/// # Errors
/// It cannot be built.
pub(crate) fn install(krate: &Crate) -> Result<PathBuf> {
    let Crate { name, version } = *krate;
    let program = krate.program();
    if !program.is_file() {
        println!("building {name} {version}");
        let mut command = Command::new("cargo");
        command
            .args(["install", "--locked", "--quiet", "--root"])
            .arg(krate.directory())
            .args(["--version", version, name]);
        quiet(&mut command)?;
    }
    Ok(program)
}
