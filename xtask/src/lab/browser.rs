//! The part with a browser, which opens the web page of a server.

use anyhow::Result;
use smbeam_tests::lab::Lab;

use super::debian;

const PACKAGES: &[&str] = &["chromium", "fonts-dejavu-core"];

/// Installs the browser.
pub(super) fn build(lab: &Lab) -> Result<()> {
    debian::install(lab, PACKAGES)
}
