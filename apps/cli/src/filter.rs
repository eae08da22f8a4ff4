//! The entries of a tree that take part in a transfer: `--exclude`, `--include` and
//! `--filter-from`.
//!
//! As in rsync and rclone, the first rule that matches a path decides. An excluded directory is
//! excluded with its contents.

mod arguments;
mod pattern;
mod rules_file;

use std::path::{Path, PathBuf};

pub(crate) use arguments::FilterArguments;
pub(crate) use pattern::Pattern;

use crate::names::LocalNames;

/// The rules of a command, in their order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    rules: Vec<Rule>,
    /// Whether files that match no rule are excluded: all rules include something.
    excludes_others: bool,
}

/// One rule.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    /// Whether matching paths take part.
    pub(super) is_include: bool,
    /// The paths that the rule is about.
    pub(super) pattern: Pattern,
}

impl Filter {
    fn new(rules: Vec<Rule>) -> Self {
        let excludes_others = !rules.is_empty() && rules.iter().all(|rule| rule.is_include);
        Self {
            rules,
            excludes_others,
        }
    }

    /// Whether every path takes part.
    pub(crate) fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Whether the entry takes part. `path` is relative to the root of the transfer, with local
    /// names. Directories that match no rule take part, because they can contain files that do.
    pub(crate) fn includes(&self, path: &Path, is_directory: bool) -> bool {
        let matches = |rule: &&Rule| rule.pattern.matches(path, is_directory);
        match self.rules.iter().find(matches) {
            Some(rule) => rule.is_include,
            None => is_directory || !self.excludes_others,
        }
    }

    /// The path of the entry with the SMB name `name` in the directory with the path `parent`.
    /// Patterns are written with the local form of names.
    pub(crate) fn path_of(parent: &Path, name: &str) -> PathBuf {
        match LocalNames::default().to_local(name) {
            Ok(local) => parent.join(&*local),
            Err(_) => parent.join(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(rules: &[(bool, &str)]) -> Filter {
        let rule = |(is_include, text): &(bool, &str)| Rule {
            is_include: *is_include,
            pattern: Pattern::parse(text).expect("a pattern"),
        };
        Filter::new(rules.iter().map(rule).collect())
    }

    #[test]
    fn the_first_rule_that_matches_decides() {
        let filter = filter(&[(true, "keep.tmp"), (false, "*.tmp"), (false, "cache/")]);
        assert!(filter.includes(Path::new("a/keep.tmp"), false));
        assert!(!filter.includes(Path::new("a/other.tmp"), false));
        assert!(filter.includes(Path::new("a/other"), false));
        assert!(!filter.includes(Path::new("a/cache"), true));
        assert!(filter.includes(Path::new("a/cache"), false));
        assert!(Filter::default().includes(Path::new("a"), false));
    }

    #[test]
    fn rules_that_only_include_exclude_all_other_files() {
        let filter = filter(&[(true, "*.jpg"), (true, "/docs/**")]);
        assert!(filter.includes(Path::new("a/b/c.jpg"), false));
        assert!(filter.includes(Path::new("docs/x/y"), false));
        assert!(!filter.includes(Path::new("a/b/c.txt"), false));
        assert!(filter.includes(Path::new("a/b"), true));
    }

    #[test]
    fn patterns_have_local_names() {
        let path = Filter::path_of(Path::new("a"), "b\u{f022}c");
        assert_eq!(path, Path::new("a/b:c"));
    }
}
