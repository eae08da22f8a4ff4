//! A stock Linux kernel mounts a share with the SMB3 POSIX extensions (`mount -o posix`), and the
//! share is a file system of Linux: modes, exact names, deletion and rename of open files, links
//! and special files, extended attributes, locks.

use anyhow::Result;
use smbeam_tests::mounts::{FAULTS, MountStage, script};
use smbeam_tests::subject::Subject;
use smbeam_tests::tests;

tests!(works_on_a_mount, locks_of_two_mounts_are_advisory);

/// The checks, which run in the guest.
const CHECKS: &str = include_str!("../../src/python/guest/posix_mount.py");
/// The checks of locks, which run in the guest.
const LOCKS: &str = include_str!("../../src/python/guest/posix_locks.py");
/// Options of the mount.
const OPTIONS: &str = "vers=3.1.1,posix";

fn works_on_a_mount() -> Result<()> {
    let stage = MountStage::new(Subject::chosen(), "posix")?;
    let checks = stage.text("posix_mount.py", CHECKS)?;
    let commands = format!(
        "grep -w posix /proc/mounts\n\
         mkdir /mnt/a/work\n\
         python3 {} /mnt/a/work {}\n",
        checks.display(),
        std::env::var("SMBEAM_POSIX_SKIP").unwrap_or_default()
    );
    let report = stage.run(&script(&[("a", OPTIONS)], &commands, FAULTS))?;
    println!("{}", report.console);
    Ok(())
}

fn locks_of_two_mounts_are_advisory() -> Result<()> {
    let stage = MountStage::new(Subject::chosen(), "posix")?;
    let checks = stage.text("posix_locks.py", LOCKS)?;
    let commands = format!(
        "mkdir /mnt/a/work\npython3 {} /mnt/a/work /mnt/b/work\n",
        checks.display()
    );
    let options = format!("{OPTIONS},nosharesock,cache=none");
    let mounts = [("a", options.as_str()), ("b", options.as_str())];
    let report = stage.run(&script(&mounts, &commands, FAULTS))?;
    println!("{}", report.console);
    Ok(())
}
