//! Locks of flock and fcntl exclude each other between two mounts of one share in a stock Linux
//! kernel.

use anyhow::Result;
use smbeam_tests::mounts::{COMPLAINTS, MountStage, script};
use smbeam_tests::subject::Subject;
use smbeam_tests::tests;

tests!(with_default_options, with_resilient_handles);

const PROGRAM: &str = include_str!("../../src/python/guest/locks.py");

fn with_default_options() -> Result<()> {
    two_mounts_exclude_each_other("vers=3.1.1,nosharesock")
}

fn with_resilient_handles() -> Result<()> {
    two_mounts_exclude_each_other("vers=3.1.1,nosharesock,resilienthandles")
}

fn two_mounts_exclude_each_other(options: &str) -> Result<()> {
    let stage = MountStage::new(Subject::chosen(), "locks")?;
    let program = stage.text("locks.py", PROGRAM)?;
    let commands = format!("python3 {} /mnt/a /mnt/b", program.display());
    let mounts = [("a", options), ("b", options)];
    stage.run(&script(&mounts, &commands, COMPLAINTS))?;
    Ok(())
}
