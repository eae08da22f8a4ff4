//! Debian root file systems, from the mirror that apt uses on this machine.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use smbeam_tests::lab::Lab;

use crate::process::{quiet, retried};

const ATTEMPTS: u32 = 3;
/// The Release file of sid can be older than its validity period. Signatures are still checked.
const APT_SETTINGS: &str = "Acquire::Check-Valid-Until \"false\";\n\
    Acquire::Retries \"5\";\n\
    APT::Install-Recommends \"false\";\n";
/// Prevents packages from starting daemons.
const POLICY_RC_D: &str = "#!/bin/sh\nexit 101\n";

/// Creates a new root file system of the release `suite` at `root`, and removes an existing one.
/// apt also uses the suites `more`.
pub(super) fn bootstrap(root: &Path, suite: &str, more: &[&str]) -> Result<()> {
    let mirror = mirror()?;
    println!("lab: debootstrap {suite}");
    retried(ATTEMPTS, || {
        remove(root)?;
        // A private mount namespace removes the mounts of debootstrap, even after a kill.
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "--", "debootstrap"]);
        command.args(["--variant=minbase", "--include=ca-certificates", suite]);
        command.arg(root).arg(&mirror.address);
        if let Some(proxy) = &mirror.proxy {
            command.env("http_proxy", proxy);
        }
        Ok(command)
    })?;
    let settings = root.join("etc/apt/apt.conf.d/90smbeam-lab");
    let proxy = mirror
        .proxy
        .map(|proxy| format!("Acquire::http::Proxy \"{proxy}\";\n"));
    fs::write(
        settings,
        format!("{APT_SETTINGS}{}", proxy.unwrap_or_default()),
    )?;
    for suite in more {
        let list = root.join(format!("etc/apt/sources.list.d/{suite}.list"));
        fs::write(list, format!("deb {} {suite} main\n", mirror.address))?;
    }
    let policy = root.join("usr/sbin/policy-rc.d");
    fs::write(&policy, POLICY_RC_D)?;
    make_executable(&policy)
}

/// Installs `packages` in the lab.
pub(super) fn install(lab: &Lab, packages: &[&str]) -> Result<()> {
    println!("lab: apt-get install {}", packages.join(" "));
    let _ = fs::copy("/etc/resolv.conf", lab.root().join("etc/resolv.conf"));
    let apt_get = |arguments: &[&str]| {
        let mut command = lab.command("env");
        command
            .args(["DEBIAN_FRONTEND=noninteractive", "apt-get"])
            .args(arguments);
        command
    };
    retried(ATTEMPTS, || Ok(apt_get(&["update"])))?;
    retried(ATTEMPTS, || {
        let mut command = apt_get(&["install", "-y"]);
        command.args(packages);
        Ok(command)
    })?;
    quiet(&mut apt_get(&["clean"]))?;
    Ok(())
}

/// Makes the file at `path` executable.
pub(super) fn make_executable(path: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
        .with_context(|| format!("cannot change the mode of {}", path.display()))
}

struct Mirror {
    address: String,
    proxy: Option<String>,
}

/// The Debian mirror of apt on this machine.
fn mirror() -> Result<Mirror> {
    let proxy = quiet(Command::new("apt-config").args(["shell", "P", "Acquire::http::Proxy"]))?;
    let proxy = proxy
        .trim()
        .strip_prefix("P=")
        .map(|quoted| quoted.trim_matches('\'').to_owned());
    if let Ok(address) = std::env::var("SMBEAM_DEBIAN_MIRROR") {
        return Ok(Mirror { address, proxy });
    }
    let targets = || {
        let mut command = Command::new("apt-get");
        command.args([
            "indextargets",
            "--format",
            "$(REPO_URI)",
            "Created-By: Packages",
        ]);
        quiet(command.args(["Origin: Debian", "Label: Debian"]))
    };
    let mut found = targets()?;
    if found.trim().is_empty() {
        // apt knows the origin of a mirror only after an update.
        quiet(Command::new("apt-get").arg("update"))?;
        found = targets()?;
    }
    let Some(address) = found.lines().next().map(str::to_owned) else {
        bail!("apt names no mirror of Debian here; name one in SMBEAM_DEBIAN_MIRROR");
    };
    Ok(Mirror { address, proxy })
}

/// Removes a root file system. Fails if something is mounted below it.
pub(super) fn remove(root: &Path) -> Result<()> {
    if !root.exists() {
        return Ok(());
    }
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    let below = |line: &&str| {
        line.split(' ')
            .nth(4)
            .is_some_and(|point| Path::new(point).starts_with(root))
    };
    if let Some(line) = mounts.lines().find(below) {
        bail!("something is mounted below {}: {line}", root.display());
    }
    fs::remove_dir_all(root).with_context(|| format!("cannot remove {}", root.display()))
}
