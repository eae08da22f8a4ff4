//! The archive: the tree for systems without a package.

use std::process::Command;

use anyhow::Result;

use super::stage::{Stage, directory};
use crate::process::quiet;

/// Makes `smbeam-VERSION-ARCHITECTURE.tar.gz`.
pub(super) fn make(stage: &Stage) -> Result<String> {
    let architecture = std::env::consts::ARCH;
    let name = format!("smbeam-{}-{architecture}.tar.gz", stage.version);
    let mut tar = Command::new("tar");
    tar.args(["--create", "--gzip", "--sort=name", "--numeric-owner"])
        .args(["--owner=0", "--group=0", "--file"])
        .arg(directory().join(&name))
        .arg("--directory")
        .arg(&stage.root)
        .arg(".");
    quiet(&mut tar)?;
    Ok(name)
}
