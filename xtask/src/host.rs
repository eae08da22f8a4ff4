//! What the host must have, installed where that is allowed and named where it is not.

use std::env;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};
use smbeam_tests::lab::is_root;

use crate::process::{quiet, retried, works};

/// A program and the Debian package that brings it.
pub(crate) struct Tool {
    pub(crate) program: &'static str,
    pub(crate) package: &'static str,
}

/// What building the workspace needs besides Rust.
pub(crate) const BUILD_TOOLS: &[Tool] = &[
    Tool {
        program: "cc",
        package: "gcc",
    },
    Tool {
        program: "make",
        package: "make",
    },
];

/// Sees to it that every one of `tools` is there; installs what is missing when run as root on
/// Debian.
pub(crate) fn ensure(tools: &[Tool]) -> Result<()> {
    let missing: Vec<&str> = tools
        .iter()
        .filter(|tool| !is_on_path(tool.program))
        .map(|tool| tool.package)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let packages = missing.join(" ");
    if !is_root() || !works("apt-get", "--version") {
        bail!(
            "these Debian packages are missing: {packages} (as root: apt-get install {packages})"
        );
    }
    println!("host: installing {packages}");
    // One broken source among many fails the update; what is needed may be known all the same.
    if let Err(error) = quiet(Command::new("apt-get").arg("update")) {
        println!("host: {error:#}");
    }
    retried(3, || {
        let mut install = Command::new("apt-get");
        install
            .args(["install", "-y", "--no-install-recommends"])
            .args(&missing);
        install.env("DEBIAN_FRONTEND", "noninteractive");
        Ok(install)
    })?;
    Ok(())
}

/// Sees to it that cargo has `component`, such as clippy.
pub(crate) fn ensure_component(component: &str, subcommand: &str) -> Result<()> {
    let mut probe = Command::new("cargo");
    if quiet(probe.args([subcommand, "--version"])).is_ok() {
        return Ok(());
    }
    println!("host: adding {component}");
    if quiet(Command::new("rustup").args(["component", "add", component])).is_err() {
        bail!("`cargo {subcommand}` is missing (with rustup: rustup component add {component})");
    }
    Ok(())
}

fn is_on_path(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    // An ordinary user's path often lacks the directories of the administrator.
    let more = ["/usr/sbin", "/sbin"].map(Path::new);
    env::split_paths(&path).any(|folder| folder.join(program).is_file())
        || more.iter().any(|folder| folder.join(program).is_file())
}
