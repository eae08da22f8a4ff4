//! The part with tools of Prometheus: promtool, and the parser of OpenMetrics for Python.

use anyhow::Result;
use smbeam_tests::lab::Lab;

use super::debian;

const PACKAGES: &[&str] = &["prometheus", "python3-prometheus-client"];

/// Installs the tools.
pub(super) fn build(lab: &Lab) -> Result<()> {
    debian::install(lab, PACKAGES)
}
