//! The package of RPM, by cargo-generate-rpm. Its description is in `apps/cli/Cargo.toml`.

use anyhow::Result;

use super::stage::{Stage, directory};
use super::tools;
use crate::process::quiet;
use crate::workspace::workspace;

/// Makes `smbeam-VERSION-1.ARCHITECTURE.rpm`.
pub(super) fn make(stage: &Stage) -> Result<String> {
    let architecture = std::env::consts::ARCH;
    let name = format!("smbeam-{}-1.{architecture}.rpm", stage.version);
    let mut command = tools::RPM.command()?;
    command
        .args(["--package", "apps/cli", "--output"])
        .arg(directory().join(&name))
        .current_dir(workspace());
    quiet(&mut command)?;
    Ok(name)
}
