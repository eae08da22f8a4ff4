//! The guest part: a user-mode Linux kernel with cifs.ko that boots from the root file system of
//! the lab.

use std::fs;
use std::os::unix::fs::symlink;

use anyhow::{Context as _, Result, bail};
use smbeam_tests::guest::Guest;
use smbeam_tests::lab::{GUEST_INIT, Lab};
use smbeam_tests::namespace::Namespace;

use super::debian;
use crate::process::quiet;

/// The kernel, and programs for backups that run in the guest.
const PACKAGES: &[&str] = &["user-mode-linux", "kmod", "rsync", "restic", "rclone"];
const INIT: &str = include_str!("guest-init.sh");
/// The directory where the package installs kernel modules, and the one where programs search for
/// them.
const MODULES: &str = "usr/lib/uml/modules";
const MODULES_EXPECTED: &str = "usr/lib/modules";

/// Adds kernel, modules and init program to the root file system, and boots it once.
pub(super) fn build(lab: &Lab) -> Result<()> {
    debian::install(lab, PACKAGES)?;
    let expected = lab.root().join(MODULES_EXPECTED);
    if expected
        .symlink_metadata()
        .is_ok_and(|found| found.is_symlink())
    {
        fs::remove_file(&expected)?;
    }
    symlink("uml/modules", &expected)
        .with_context(|| format!("cannot make {}", expected.display()))?;
    for version in fs::read_dir(lab.root().join(MODULES))? {
        quiet(lab.command("depmod").arg(version?.file_name()))?;
    }
    write_init(lab)?;
    boot(lab)
}

/// Writes the init program of the guests.
pub(super) fn write_init(lab: &Lab) -> Result<()> {
    let init = lab.root().join(GUEST_INIT.trim_start_matches('/'));
    fs::create_dir_all(
        init.parent()
            .context("the init program has a parent directory")?,
    )?;
    fs::write(&init, INIT)?;
    debian::make_executable(&init)
}

fn boot(lab: &Lab) -> Result<()> {
    let namespace = Namespace::with_tap()?;
    let report = Guest::new(lab, &namespace).run("modprobe cifs && test -d /proc/fs/cifs")?;
    if report.code != Some(0) {
        bail!("the guest does not boot with cifs:\n{}", report.console);
    }
    println!("lab: the guest boots with cifs");
    Ok(())
}
