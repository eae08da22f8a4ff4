//! Programs that the host must have. Missing ones are installed if that is allowed, or named.

use std::env;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};
use smbeam_tests::lab::is_root;

use crate::process::{quiet, retried, works};

/// A program and its Debian package.
pub(crate) struct Tool {
    pub(crate) program: &'static str,
    pub(crate) package: &'static str,
}

/// The tools for building the workspace, besides Rust.
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

/// The tools that interop cases run on the host.
pub(crate) const INTEROP_TOOLS: &[Tool] = &[Tool {
    program: "rsync",
    package: "rsync",
}];

/// Installs the missing ones of `tools` as root on Debian, or fails with their names.
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
    // One broken package source fails the update, but the others can be sufficient.
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

/// Adds the component `component` of cargo, such as clippy, if `subcommand` is missing.
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
    // The PATH of ordinary users often lacks the directories for administrators.
    let more = ["/usr/sbin", "/sbin"].map(Path::new);
    env::split_paths(&path).any(|directory| directory.join(program).is_file())
        || more
            .iter()
            .any(|directory| directory.join(program).is_file())
}
