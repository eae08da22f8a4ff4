//! Lists of tests that are known to fail: one test per line, `NAME # REASON`. Empty lines and lines
//! that start with `#` are comments.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, ensure};

/// Known failures: the reason by the name of the test.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known(BTreeMap<String, String>);

/// The outcome of a run beside its list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Tests that fail and are not in the list.
    pub unexpected: Vec<String>,
    /// Entries of the list with a test that passes.
    pub obsolete: Vec<String>,
}

impl Known {
    /// Reads a list.
    ///
    /// # Errors
    /// A line has no reason, or its test has a line already.
    pub fn parse(text: &str) -> Result<Known> {
        let mut known = BTreeMap::new();
        let lines = text.lines().map(str::trim);
        for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let entry = line.split_once('#');
            let (name, reason) = entry.with_context(|| format!("no reason: {line}"))?;
            let (name, reason) = (name.trim(), reason.trim());
            ensure!(!name.is_empty() && !reason.is_empty(), "no reason: {line}");
            let before = known.insert(name.to_owned(), reason.to_owned());
            ensure!(before.is_none(), "{name} is listed twice");
        }
        Ok(Known(known))
    }

    /// Compares a run with the list. Tests that did not run do not count.
    pub fn judge(&self, passed: &BTreeSet<String>, failed: &BTreeSet<String>) -> Verdict {
        let is_listed = |name: &&String| self.0.contains_key(*name);
        Verdict {
            unexpected: failed.iter().filter(|n| !is_listed(n)).cloned().collect(),
            obsolete: passed.iter().filter(is_listed).cloned().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> BTreeSet<String> {
        names.iter().copied().map(str::to_owned).collect()
    }

    #[test]
    fn a_list_has_a_reason_for_each_test() {
        let known = Known::parse("# about\n\n a::b # why\nc # other # words\n").expect("a list");
        assert_eq!(known.0["a::b"], "why");
        assert_eq!(known.0["c"], "other # words");
        for wrong in ["a::b", "a::b #", "# fine\n a # x\na # y"] {
            assert!(Known::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_failures_outside_of_the_list_are_unexpected() {
        let known = Known::parse("fails # x\npasses # y\nabsent # z\n").expect("a list");
        let verdict = known.judge(&names(&["passes", "good"]), &names(&["fails", "new"]));
        assert_eq!(verdict.unexpected, ["new"]);
        assert_eq!(verdict.obsolete, ["passes"]);
    }
}
