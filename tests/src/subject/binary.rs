//! The `smbeam` program that the tests start.

use std::env;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context as _, Result, anyhow};

/// The program that `SMBEAM_BIN` names; without it the one of this workspace, built now.
pub(super) fn path() -> Result<PathBuf> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = BUILT.get_or_init(|| find().map_err(|error| format!("{error:#}")));
    built.clone().map_err(|reason| anyhow!(reason))
}

fn find() -> Result<PathBuf> {
    if let Some(path) = env::var_os("SMBEAM_BIN") {
        return Ok(path.into());
    }
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args([
            "build",
            "--package",
            "smbeam",
            "--message-format",
            "json-render-diagnostics",
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .context("cannot run cargo")?;
    if !output.status.success() {
        return Err(anyhow!(
            "cannot build smbeam: {}",
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    let path = messages
        .lines()
        .filter_map(|line| line.split_once("\"executable\":\""))
        .next_back();
    let (path, _) = path
        .and_then(|(_, rest)| rest.split_once('"'))
        .context("no program built")?;
    Ok(path.into())
}
