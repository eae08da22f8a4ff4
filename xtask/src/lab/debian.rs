//! Root file systems of Debian, from the mirror that this machine's apt uses.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use smbeam_tests::lab::Lab;

use crate::process::{quiet, retried};

const ATTEMPTS: u32 = 3;
/// sid's Release file may be older than it allows itself; signatures are checked all the same.
const APT_SETTINGS: &str = "Acquire::Check-Valid-Until \"false\";\n\
    Acquire::Retries \"5\";\n\
    APT::Install-Recommends \"false\";\n";
/// Keeps packages from starting their daemons.
const POLICY_RC_D: &str = "#!/bin/sh\nexit 101\n";

/// Makes a fresh root file system of the release `suite` at `root`, whatever was left there before.
/// Packages are also taken from the suites `more`.
pub(super) fn bootstrap(root: &Path, suite: &str, more: &[&str]) -> Result<()> {
    let mirror = mirror()?;
    println!("lab: debootstrap {suite}");
    retried(ATTEMPTS, || {
        remove(root)?;
        // In a mount namespace of its own: what debootstrap mounts ends with it, even when it is
        // killed.
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

/// Installs `packages` into the lab.
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

/// Gives the file at `path` the mode of a program.
pub(super) fn make_executable(path: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
        .with_context(|| format!("cannot change the mode of {}", path.display()))
}

struct Mirror {
    address: String,
    proxy: Option<String>,
}

/// The mirror of Debian that apt itself uses on this machine.
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

/// Removes a root file system, unless something is still mounted below it.
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
