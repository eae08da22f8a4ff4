//! The packages work on systems that have nothing of smbeam: the package of Debian on an empty
//! Debian, and the container image in name spaces. The scripts in packaging/test print a
//! transcript.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use smbeam_tests::harness::Test;
use smbeam_tests::lab::{Lab, Missing};
use smbeam_tests::scratch::Scratch;

/// The variable with the directory of the packages, which `cargo xtask test full` makes.
const PACKAGES: &str = "SMBEAM_PACKAGES";
/// The release of Debian that the binary is built for.
const RELEASE: &str = "bookworm";

pub(crate) fn tests() -> Vec<Test> {
    vec![
        Test::new("the_package_of_debian_serves_and_leaves", debian).long(),
        Test::new("systemd_starts_reloads_and_stops_the_service", systemd).long(),
        Test::new("the_container_image_serves_without_root", container).long(),
    ]
}

/// The directory of the packages.
fn packages() -> Result<PathBuf> {
    let missing = || Missing(format!("no packages: {PACKAGES} is not set"));
    let directory = env::var_os(PACKAGES).ok_or_else(missing)?;
    Ok(PathBuf::from(directory))
}

/// Runs a script in name spaces of its own, and prints its transcript.
fn run(script: &str, arguments: &[&Path]) -> Result<()> {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/test");
    let output = Command::new("unshare")
        .args(["--mount", "--net", "--pid", "--fork", "--kill-child"])
        .args(["--propagation", "private", "--", "bash"])
        .arg(scripts.join(script))
        .args(arguments)
        .output()?;
    let transcript = String::from_utf8_lossy(&output.stdout);
    println!("{transcript}");
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{transcript}\n{errors}");
    ensure!(transcript.ends_with("## done\n"), "{transcript}\n{errors}");
    Ok(())
}

/// The package of Debian.
fn package() -> Result<PathBuf> {
    let entries = fs::read_dir(packages()?)?;
    let mut paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let package = paths.find(|path| path.extension().is_some_and(|end| end == "deb"));
    package.context("no package of Debian")
}

/// Makes an empty Debian with these packages.
fn make_system(root: &Path, packages: &str) -> Result<()> {
    let made = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "--", "debootstrap"])
        .args([
            "--variant=minbase",
            &format!("--include={packages}"),
            RELEASE,
        ])
        .arg(root)
        .output()?;
    ensure!(made.status.success(), "debootstrap: {made:?}");
    Ok(())
}

fn debian() -> Result<()> {
    let (lab, package) = (Lab::find()?, package()?);
    let scratch = Scratch::new("debian")?;
    let root = scratch.path().join("root");
    make_system(&root, "ca-certificates")?;
    run("debian.sh", &[&package, &root, lab.root()])
}

fn systemd() -> Result<()> {
    let (lab, package) = (Lab::find_with_guest()?, package()?);
    let scratch = Scratch::new("systemd")?;
    let root = scratch.path().join("root");
    make_system(&root, "systemd,systemd-sysv,dbus")?;
    run("systemd.sh", &[&package, &root, lab.root()])
}

fn container() -> Result<()> {
    let (lab, packages) = (Lab::find()?, packages()?);
    let image = packages.join(format!("image:{}", env!("CARGO_PKG_VERSION")));
    let scratch = Scratch::new("container")?;
    let bundle = scratch.path().join("bundle");
    run("container.sh", &[&image, &bundle, lab.root()])
}
