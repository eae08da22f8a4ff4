//! The wheel of the Python package.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::stage::directory;
use super::tools;
use crate::process::quiet;
use crate::workspace::workspace;

/// The tool that makes wheels of crates, and its version.
const MATURIN: &str = "maturin==1.16.0";

/// Makes `smbeam-VERSION-cp39-abi3-....whl`: one wheel for every version of Python.
pub(super) fn make() -> Result<String> {
    let maturin = maturin()?;
    println!("package: building the Python package");
    let output = quiet(
        Command::new(maturin)
            .args(["build", "--profile", "dist", "--out"])
            .arg(directory())
            .args(["--manifest-path", "apps/python/Cargo.toml"])
            .current_dir(workspace()),
    )?;
    let mut newest = None;
    for entry in std::fs::read_dir(directory())? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.ends_with(".whl") {
            newest = newest.max(Some((entry.metadata()?.modified()?, name)));
        }
    }
    let (_, name) = newest.with_context(|| format!("no wheel was made: {output}"))?;
    ensure!(
        name.contains("abi3"),
        "not a wheel for all versions: {name}"
    );
    Ok(name)
}

/// The path of the tool. It is installed once, in an environment of its own.
fn maturin() -> Result<PathBuf> {
    let environment = tools::root().join(MATURIN.replace("==", "-"));
    let program = environment.join("bin/maturin");
    if !program.exists() {
        println!("package: installing {MATURIN}");
        quiet(
            Command::new("python3")
                .args(["-m", "venv"])
                .arg(&environment),
        )?;
        let mut pip = Command::new(environment.join("bin/python"));
        quiet(pip.args(["-m", "pip", "install", "--quiet", MATURIN]))?;
    }
    Ok(program)
}
