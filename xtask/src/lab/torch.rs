//! The part with PyTorch, for the newest Python of Debian.

use anyhow::Result;
use smbeam_tests::lab::Lab;

use super::debian;

const PACKAGES: &[&str] = &[
    "python3-torch",
    "python3-numpy",
    "python3-pytest",
    "python3-venv",
];

/// Installs the packages.
pub(super) fn build(lab: &Lab) -> Result<()> {
    debian::install(lab, PACKAGES)
}
