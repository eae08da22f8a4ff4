//! The bill of materials (SBOM) of the binary, in the format CycloneDX, by cargo-cyclonedx.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::stage::{Stage, directory};
use super::tools;
use crate::process::quiet;
use crate::workspace::workspace;

const NAME: &str = "smbeam.cdx.json";

/// Makes `smbeam.cdx.json`.
pub(super) fn make(_stage: &Stage) -> Result<String> {
    let mut command = tools::CYCLONEDX.command()?;
    command
        .args(["--manifest-path", "apps/cli/Cargo.toml", "--format", "json"])
        .args(["--override-filename", "smbeam.cdx"])
        .current_dir(workspace());
    quiet(&mut command)?;
    fs::rename(
        workspace().join("apps/cli").join(NAME),
        directory().join(NAME),
    )?;
    clean()?;
    Ok(NAME.to_owned())
}

/// Removes the bills of the other packages: the tool writes one beside each manifest.
fn clean() -> Result<()> {
    let mut packages = ["tests", "bench/compare", "xtask"]
        .map(PathBuf::from)
        .to_vec();
    for parent in ["crates", "apps"] {
        for entry in fs::read_dir(workspace().join(parent))? {
            packages.push(Path::new(parent).join(entry?.file_name()));
        }
    }
    for package in packages {
        let bill = workspace().join(package).join(NAME);
        if bill.exists() {
            fs::remove_file(bill)?;
        }
    }
    Ok(())
}
