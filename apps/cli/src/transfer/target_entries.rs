//! The entries of a target directory, which a transfer compares with those of the source.

use std::collections::BTreeMap;

use wire::upcase::upcased;

use crate::file_path::Entry;

/// The entries for which the source has shown no entry yet. Names that differ in case only can
/// exist beside each other on this machine, and on a server if local programs created them.
#[derive(Default)]
pub(super) struct TargetEntries(BTreeMap<String, Vec<Entry>>);

impl TargetEntries {
    /// Adds an entry.
    pub(super) fn insert(&mut self, entry: Entry) {
        self.0.entry(upcased(&entry.name)).or_default().push(entry);
    }

    /// Removes and returns the entry with exactly this name.
    pub(super) fn take(&mut self, name: &str) -> Option<Entry> {
        self.take_if(name, |entry| entry.name == name)
    }

    /// Whether an entry has a name that differs from this one in case only.
    pub(super) fn has_other_case(&self, name: &str) -> bool {
        let entries = self.0.get(&upcased(name));
        entries.is_some_and(|entries| entries.iter().any(|entry| entry.name != name))
    }

    /// Removes and returns an entry with a name that differs from this one in case only, if
    /// `is_wanted` accepts it.
    pub(super) fn take_other_case(
        &mut self,
        name: &str,
        is_wanted: impl Fn(&Entry) -> bool,
    ) -> Option<Entry> {
        self.take_if(name, |entry| entry.name != name && is_wanted(entry))
    }

    fn take_if(&mut self, name: &str, is_wanted: impl Fn(&Entry) -> bool) -> Option<Entry> {
        let entries = self.0.get_mut(&upcased(name))?;
        let index = entries.iter().position(is_wanted)?;
        Some(entries.swap_remove(index))
    }

    /// The entries that are left.
    pub(super) fn into_entries(self) -> impl Iterator<Item = Entry> {
        self.0.into_values().flatten()
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use smbeam_client::FileAttributes;

    use super::*;
    use crate::file_path::{FileInfo, Kind};

    fn entries(names: &[&str]) -> TargetEntries {
        let mut entries = TargetEntries::default();
        for name in names {
            entries.insert(Entry {
                name: (*name).to_owned(),
                info: FileInfo {
                    kind: Kind::File,
                    size: 0,
                    allocation: 0,
                    created: None,
                    accessed: UNIX_EPOCH,
                    written: UNIX_EPOCH,
                    changed: UNIX_EPOCH,
                    attributes: FileAttributes::NONE,
                    file_id: None,
                    shared: None,
                },
            });
        }
        entries
    }

    #[test]
    fn the_exact_name_comes_first() {
        let mut entries = entries(&["Readme", "README", "other"]);
        assert_eq!(
            entries.take("README").map(|entry| entry.name).as_deref(),
            Some("README")
        );
        assert!(entries.take("README").is_none());
        assert!(entries.has_other_case("README") && !entries.has_other_case("Readme"));
        assert!(entries.take_other_case("README", |_| false).is_none());
        let other = entries.take_other_case("README", |_| true);
        assert_eq!(other.map(|entry| entry.name).as_deref(), Some("Readme"));
        assert!(!entries.has_other_case("README"));
        let left: Vec<_> = entries.into_entries().map(|entry| entry.name).collect();
        assert_eq!(left, ["other"]);
    }
}
