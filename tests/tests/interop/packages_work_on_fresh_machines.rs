//! The packages work on systems that have nothing of smbeam: the package of Debian on an empty
//! Debian, the container image in name spaces, and the wheel in environments of Python. The scripts
//! in packaging/test print a transcript.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use smbeam_tests::harness::Test;
use smbeam_tests::lab::{Lab, Missing};
use smbeam_tests::scratch::Scratch;
use smbeam_tests::subject::{Plan, ROOT, Server, Subject};

/// The variable with the directory of the packages, which `cargo xtask test full` makes.
const PACKAGES: &str = "SMBEAM_PACKAGES";
/// The release of Debian that the binary is built for.
const RELEASE: &str = "bookworm";

pub(crate) fn tests() -> Vec<Test> {
    vec![
        Test::new("the_package_of_debian_serves_and_leaves", debian).long(),
        Test::new("systemd_starts_reloads_and_stops_the_service", systemd).long(),
        Test::new("the_container_image_serves_without_root", container).long(),
        Test::new("the_wheel_works_in_a_fresh_environment", wheel).long(),
        Test::new("the_wheel_works_with_the_newest_python", wheel_of_lab).long(),
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

/// The package with this end of its name.
fn package(end: &str) -> Result<PathBuf> {
    let entries = fs::read_dir(packages()?)?;
    let mut paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let package = paths.find(|path| path.extension().is_some_and(|it| it == end));
    package.with_context(|| format!("no package .{end}"))
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
    let (lab, package) = (Lab::find()?, package("deb")?);
    let scratch = Scratch::new("debian")?;
    let root = scratch.path().join("root");
    make_system(&root, "ca-certificates")?;
    run("debian.sh", &[&package, &root, lab.root()])
}

fn systemd() -> Result<()> {
    let (lab, package) = (Lab::find_with_guest()?, package("deb")?);
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

/// With the Python of this machine.
fn wheel() -> Result<()> {
    install_wheel(|program| Ok(Command::new(program)))
}

/// With the Python of the lab.
fn wheel_of_lab() -> Result<()> {
    let lab = Lab::find_with_torch()?;
    install_wheel(|program| Ok(lab.command(program)))
}

/// Installs the wheel into an environment that has nothing else, and uses it as a command and as a
/// module.
fn install_wheel(command: impl Fn(&str) -> Result<Command>) -> Result<()> {
    let wheel = package("whl")?;
    let scratch = Scratch::new("wheel")?;
    let (environment, share) = (
        scratch.path().join("venv"),
        scratch.open_directory("share")?,
    );
    // The lab sees this directory only.
    let name = wheel.file_name().context("a wheel has a name")?;
    let copy = scratch.path().join(name);
    fs::copy(&wheel, &copy)?;
    let mut plan = Plan::sharing(&share);
    plan.users.push(ROOT);
    let server = Server::start_as(Subject::Smbeam, None, None, plan)?;
    succeed(command("python3")?.args(["-m", "venv"]).arg(&environment))?;
    let python = environment.join("bin/python").display().to_string();
    let pip = ["-m", "pip", "install", "--quiet", "--no-index"];
    succeed(command(&python)?.args(pip).arg(copy))?;
    let version = succeed(command(&python)?.args(["-m", "smbeam", "--version"]))?;
    ensure!(version.starts_with("smbeam "), "{version}");
    let found = succeed(
        command(&python)?
            .args(["-c", PROGRAM])
            .arg(format!("smb://root@{}/data", server.tcp))
            .env("SMBEAM_PASSWORD", ROOT.password),
    )?;
    ensure!(found == "content\n", "{found}");
    ensure!(fs::read(share.join("file"))? == b"content");
    Ok(())
}

/// Writes and reads a file of the share that the argument names.
const PROGRAM: &str = "\
import sys, smbeam
share = smbeam.connect(sys.argv[1])
share.write('file', b'content')
print(share.read('file').decode())
";

/// Runs a command that must succeed, and returns its output.
fn succeed(command: &mut Command) -> Result<String> {
    let output = command.output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?}: {errors}");
    Ok(String::from_utf8(output.stdout)?)
}
