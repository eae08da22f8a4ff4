//! The ways in which files got modes and owners, for the remark at the end of a command.

use std::collections::BTreeMap;
use std::sync::Mutex;

use super::change::Way;
use crate::format;
use crate::mutex::lock;
use crate::report::Report;

/// The ways in which files were changed.
#[derive(Default)]
pub(crate) struct Ways(Mutex<BTreeMap<&'static str, u64>>);

impl Ways {
    /// Counts a change.
    pub(crate) fn add(&self, way: Way) {
        if let Some(remark) = way.remark() {
            *lock(&self.0).entry(remark).or_default() += 1;
        }
    }

    /// Says what was done on a server without the SMB3 POSIX extensions.
    pub(crate) fn report(&self, report: &Report, what: &str) {
        for (remark, count) in &*lock(&self.0) {
            let files = format::count(*count, "file");
            report.note(&format!("{what} of {files} set {remark}"));
        }
    }
}
