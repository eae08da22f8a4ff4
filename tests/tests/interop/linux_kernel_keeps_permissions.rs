//! A stock Linux kernel with the SMB3 POSIX extensions (`mount -o posix`) leaves modes and owners
//! on the disk of the server as its programs ask for them: new files, chmod, chown, directories
//! that hand down their group, and the umask. The checks are not for smbd: its module acl_xattr
//! replaces the modes of new files.

use anyhow::Result;
use smbeam_tests::mounts::{FAULTS, MountStage, script};
use smbeam_tests::subject::Subject;
use smbeam_tests::tests;

tests!(as_root, as_a_user, as_a_user_without_owners);

/// The checks, which run in the guest.
const CHECKS: &str = include_str!("../../src/python/guest/posix_disk.py");
const OPTIONS: &str = "vers=3.1.1,posix";
/// The same with owners of new files, and chown.
const OPTIONS_WITH_OWNERS: &str = "vers=3.1.1,posix,idsfromsid";

fn as_root() -> Result<()> {
    let stage = MountStage::as_root(Subject::Smbeam, "disk")?;
    check(&stage, "root", OPTIONS_WITH_OWNERS)
}

fn as_a_user() -> Result<()> {
    let stage = MountStage::new(Subject::Smbeam, "disk")?;
    check(&stage, "user", OPTIONS_WITH_OWNERS)
}

fn as_a_user_without_owners() -> Result<()> {
    let stage = MountStage::new(Subject::Smbeam, "disk")?;
    check(&stage, "plain", OPTIONS)
}

fn check(stage: &MountStage, session: &str, options: &str) -> Result<()> {
    let checks = stage.text("posix_disk.py", CHECKS)?;
    let commands = format!(
        "mkdir /mnt/a/work\npython3 {} {session} /mnt/a/work {}/work\n",
        checks.display(),
        stage.share.display()
    );
    let report = stage.run(&script(&[("a", options)], &commands, FAULTS))?;
    println!("{}", report.console);
    Ok(())
}
