//! The results of all tests on one file system.

use std::collections::BTreeMap;
use std::time::Duration;

use smbeam_tests::torture::{KnownFailures, Listed, Verdict};

use crate::table;

/// The results of all tests on one file system.
pub(super) struct Score {
    volume: &'static str,
    rows: Vec<Row>,
    time: Duration,
}

/// The result of a test.
struct Row {
    test: Listed,
    /// `None` for a test that was not run.
    verdict: Option<Verdict>,
}

impl Row {
    fn passes(&self) -> bool {
        self.verdict == Some(Verdict::Passed)
    }
}

impl Score {
    pub(super) fn new(
        volume: &'static str,
        tests: &[Listed],
        verdicts: Vec<Option<Verdict>>,
        time: Duration,
    ) -> Self {
        let rows = tests.iter().cloned().zip(verdicts);
        let rows = rows.map(|(test, verdict)| Row { test, verdict });
        Self {
            volume,
            rows: rows.collect(),
            time,
        }
    }

    /// A table with the counts of each group.
    pub(super) fn table(&self) -> String {
        let mut groups: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
        for row in &self.rows {
            let counts = groups.entry(row.test.group()).or_default();
            counts[0] += 1;
            counts[1] += usize::from(row.passes());
            counts[2] += usize::from(row.test.samba_passes());
        }
        let rows: Vec<Vec<String>> = groups
            .iter()
            .map(|(group, counts)| {
                let counts = counts.iter().map(ToString::to_string);
                [(*group).to_owned()].into_iter().chain(counts).collect()
            })
            .collect();
        table::render(&["group", "tests", "smbeam", "Samba"], &rows)
    }

    /// The tests that Samba passes and that fail here without a known reason.
    pub(super) fn unexplained(&self, known: &KnownFailures) -> Vec<&str> {
        let failed = self.failed();
        let is_known = |name: &&str| known.tests().any(|test| test == *name);
        failed.filter(|name| !is_known(name)).collect()
    }

    /// The names of the tests that Samba passes and that fail here.
    fn failed(&self) -> impl Iterator<Item = &str> {
        let is_worse = |row: &&Row| row.test.samba_passes() && !row.passes();
        let failed = self.rows.iter().filter(is_worse);
        failed.map(|row| row.test.name.as_str())
    }

    /// The totals, and the tests that fail without a known reason.
    pub(super) fn summary(&self, known: &KnownFailures) -> String {
        let passed = self.rows.iter().filter(|row| row.passes()).count();
        let samba = self.rows.iter().filter(|row| row.test.samba_passes());
        let mut text = format!(
            "{}: {passed} of {} tests pass in {:.0} s (Samba: {}); {} pass with Samba alone",
            self.volume,
            self.rows.len(),
            self.time.as_secs_f64(),
            samba.count(),
            self.failed().count(),
        );
        for name in self.unexplained(known) {
            text.push_str(&format!("\n  no reason in known-failures.toml: {name}"));
        }
        text
    }
}
