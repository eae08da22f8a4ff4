//! The part with a server of NFS, which runs in the lab without a module of this machine's kernel.
//! The guest part has the client in its kernel.

use anyhow::Result;
use smbeam_tests::lab::Lab;

use super::debian;

const PACKAGES: &[&str] = &["nfs-ganesha", "nfs-ganesha-vfs", "nfs-common"];

/// Installs the packages.
pub(super) fn build(lab: &Lab) -> Result<()> {
    debian::install(lab, PACKAGES)
}
