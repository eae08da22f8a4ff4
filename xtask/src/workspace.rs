//! The workspace, the directory of its builds, and the server that other commands measure.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// The variable that names the server to measure.
pub(crate) const BINARY: &str = "SMBEAM_BIN";

/// The root directory of the workspace.
pub(crate) fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map_or_else(PathBuf::new, Path::to_path_buf)
}

/// The directory where cargo puts what it builds.
pub(crate) fn target() -> PathBuf {
    let named = env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    named.map_or_else(
        || workspace().join("target"),
        |directory| workspace().join(directory),
    )
}

/// The server to measure: `SMBEAM_BIN`, or an optimized build of the workspace.
pub(crate) fn server() -> Result<OsString> {
    if let Some(path) = env::var_os(BINARY) {
        return Ok(path);
    }
    let built = Command::new("cargo")
        .args(["build", "--release", "--package", "smbeam"])
        .current_dir(workspace())
        .status()
        .context("cannot run cargo")?;
    ensure!(built.success(), "the server does not build");
    Ok(target().join("release/smbeam").into())
}
