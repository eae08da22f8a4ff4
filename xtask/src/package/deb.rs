//! The package of Debian, by cargo-deb. Its description is in `apps/cli/Cargo.toml`.

use anyhow::Result;

use super::stage::{Stage, directory};
use super::tools;
use crate::process::quiet;
use crate::workspace::workspace;

/// Makes `smbeam_VERSION-1_ARCHITECTURE.deb`.
pub(super) fn make(_stage: &Stage) -> Result<String> {
    let mut command = tools::DEB.command()?;
    command
        .args([
            "--package",
            "smbeam",
            "--no-build",
            "--no-strip",
            "--output",
        ])
        .arg(directory())
        .current_dir(workspace());
    let output = quiet(&mut command)?;
    let path = output.lines().last().unwrap_or_default().trim();
    let name = path.rsplit('/').next().unwrap_or_default();
    Ok(name.to_owned())
}
