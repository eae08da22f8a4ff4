//! The kernel of the RDMA guest: user-mode Linux from the Debian source package. The binary kernels
//! of Debian have neither SMB Direct nor software iWARP.
//!
//! The result is one file beside the root file system, so a new root file system needs no new
//! kernel. Compiler and source are in a separate root file system, which is removed at the end.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use anyhow::{Context as _, Result, bail};
use smbeam_tests::lab::{KERNEL_RECIPE, Lab, directory};

use super::debian;
use crate::process::quiet;

/// The release with a suitable compiler, and with new kernels in its backports.
const SUITE: &str = "trixie";
const BACKPORTS: &str = "trixie-backports";
const PACKAGES: &[&str] = &[
    "gcc",
    "libc6-dev",
    "make",
    "flex",
    "bison",
    "bc",
    "xz-utils",
];
const CONFIGURATION: &str = include_str!("rdma.config");
/// The directory where the Debian package installs the source.
const SOURCES: &str = "usr/src";
/// The oldest kernel that supports RDMA devices and several processors in user-mode Linux.
const OLDEST: (u32, u32) = (7, 2);

/// Returns the kernel, and builds it if it does not exist.
pub(super) fn ready() -> Result<PathBuf> {
    let kernel = directory().join(format!("linux-rdma-{KERNEL_RECIPE}"));
    if !kernel.exists() {
        build(&kernel)?;
    }
    Ok(kernel)
}

fn build(kernel: &Path) -> Result<()> {
    let build_root = directory().join("kernel-build");
    let lab = Lab::at(&build_root);
    debian::bootstrap(lab.root(), SUITE, &[BACKPORTS])?;
    debian::install(&lab, PACKAGES)?;
    let package = newest_source(&lab)?;
    debian::install(&lab, &[&package])?;
    let sources = lab.root().join(SOURCES);
    fs::write(sources.join("rdma.config"), CONFIGURATION)?;
    println!("lab: unpacking {package}");
    let archive = format!("/{SOURCES}/{package}.tar.xz");
    quiet(
        lab.command("tar")
            .args(["-xJf", &archive, "-C", "/", "--transform"])
            .arg(format!("s,^{package},{SOURCES}/linux,")),
    )?;
    configure(&lab, &sources.join("linux"))?;
    println!("lab: compiling the kernel; this takes some minutes");
    quiet(make(&lab).arg("linux"))?;
    let draft = kernel.with_extension("unfinished");
    fs::copy(sources.join("linux/linux"), &draft).context("the kernel was not built")?;
    fs::rename(&draft, kernel)?;
    debian::remove(&build_root)
}

/// Configures the kernel. Fails if it lacks a requested option.
fn configure(lab: &Lab, source: &Path) -> Result<()> {
    let mut command = make(lab);
    command.arg(format!("KCONFIG_ALLCONFIG=/{SOURCES}/rdma.config"));
    quiet(command.arg("allnoconfig"))?;
    let chosen = fs::read_to_string(source.join(".config"))?;
    let left_out = left_out(CONFIGURATION, &chosen);
    if !left_out.is_empty() {
        bail!("this kernel does not know {}", left_out.join(", "));
    }
    Ok(())
}

/// The lines of the configuration `wanted` that are not in `chosen`.
fn left_out<'a>(wanted: &'a str, chosen: &str) -> Vec<&'a str> {
    let options = wanted.lines().filter(|line| line.starts_with("CONFIG_"));
    options
        .filter(|option| !chosen.lines().any(|line| line == *option))
        .collect()
}

/// The make command for user-mode Linux, at low priority.
fn make(lab: &Lab) -> Command {
    let jobs = thread::available_parallelism().map_or(1, usize::from);
    let mut command = lab.command("nice");
    command.args(["make", "-C", &format!("/{SOURCES}/linux"), "ARCH=um"]);
    command.arg(format!("-j{jobs}"));
    command
}

/// The package with the newest source.
fn newest_source(lab: &Lab) -> Result<String> {
    let mut command = lab.command("apt-cache");
    let found = quiet(command.args(["search", "--names-only", "^linux-source-[0-9]"]))?;
    let newest = newest(&found);
    newest.with_context(|| format!("the mirror has no source of Linux {OLDEST:?} or newer"))
}

fn newest(found: &str) -> Option<String> {
    let packages = found.lines().filter_map(|line| {
        let name = line.split_whitespace().next()?;
        let (major, minor) = name.strip_prefix("linux-source-")?.split_once('.')?;
        let version = (major.parse().ok()?, minor.parse().ok()?);
        (version >= OLDEST).then(|| (version, name.to_owned()))
    });
    packages.max().map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::{left_out, newest};

    #[test]
    fn the_newest_source_is_chosen_by_number() {
        let found = "linux-source-6.12 - older\nlinux-source-7.9 - one\nlinux-source-7.10 - other\n\
            linux-source - none\n";
        assert_eq!(newest(found).as_deref(), Some("linux-source-7.10"));
        assert_eq!(newest("linux-source-6.12 - older\n"), None);
    }

    #[test]
    fn an_option_that_is_missing_or_different_is_left_out() {
        let wanted = "# why\nCONFIG_A=y\nCONFIG_B=2\nCONFIG_C=y\n";
        assert_eq!(
            left_out(wanted, "CONFIG_A=y\nCONFIG_B=3\n# CONFIG_C is not set\n"),
            ["CONFIG_B=2", "CONFIG_C=y"]
        );
    }
}
