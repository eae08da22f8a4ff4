//! The part with test suites: packages in the root file system, and crates beside it.

use anyhow::Result;
use smbeam_tests::lab::{FSX, Lab, PJDFSTEST};

use super::debian;
use crate::crates;

/// Programs that run on mounts, on this machine and in the guest.
const PACKAGES: &[&str] = &["dbench", "fio", "git", "rsync", "stress-ng"];

/// Installs the programs.
pub(super) fn build(lab: &Lab) -> Result<()> {
    for krate in [PJDFSTEST, FSX] {
        crates::install(&krate)?;
    }
    debian::install(lab, PACKAGES)
}
