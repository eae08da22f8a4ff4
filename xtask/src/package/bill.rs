//! The bill of materials (SBOM) of the binary, in the format CycloneDX, by cargo-cyclonedx.

use std::fs;

use anyhow::Result;

use super::stage::{Stage, directory};
use super::tools;
use crate::process::quiet;
use crate::workspace::workspace;

/// Makes `smbeam.cdx.json`.
pub(super) fn make(_stage: &Stage) -> Result<String> {
    let mut command = tools::CYCLONEDX.command()?;
    command
        .args(["--manifest-path", "apps/cli/Cargo.toml", "--format", "json"])
        .args(["--override-filename", "smbeam.cdx"])
        .current_dir(workspace());
    quiet(&mut command)?;
    // The tool writes beside the manifest of each package.
    let name = "smbeam.cdx.json";
    fs::rename(
        workspace().join("apps/cli").join(name),
        directory().join(name),
    )?;
    Ok(name.to_owned())
}
