//! The last removals of names by this server.
//!
//! Between the open of a file for a CREATE and the entry of that open in the table of open files,
//! another request can remove the name. The file has then left the table, and only this list shows
//! that the name is gone.

use alloc::collections::VecDeque;

use crate::file::FileKey;

/// Number of removals that the list keeps: those that can finish while the file system opens a
/// file.
const KEPT: usize = 256;

/// The files of the last removals.
#[derive(Debug, Default)]
pub(super) struct Removals {
    /// Number of all removals.
    count: u64,
    last: VecDeque<FileKey>,
}

impl Removals {
    /// Number of removals so far.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Adds the removal of a name of a file.
    pub(super) fn add(&mut self, key: FileKey) {
        if self.last.len() == KEPT {
            self.last.pop_front();
        }
        self.last.push_back(key.of_file());
        self.count += 1;
    }

    /// Whether a name of the file was removed after the first `count` removals. Removals that
    /// have left the list count as those of other files.
    pub(super) fn include(&self, key: FileKey, count: u64) -> bool {
        let later = usize::try_from(self.count.saturating_sub(count)).unwrap_or(usize::MAX);
        let mut later = self.last.iter().rev().take(later);
        later.any(|removed| *removed == key.of_file())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(file: u64) -> FileKey {
        FileKey {
            file,
            ..FileKey::default()
        }
    }

    #[test]
    fn only_later_removals_count() {
        let mut removals = Removals::default();
        removals.add(key(1));
        let before = removals.count();
        assert!(!removals.include(key(1), before));
        removals.add(key(2));
        assert!(removals.include(key(2), before));
        assert!(removals.include(key(1), 0));
        assert!(!removals.include(key(3), 0));
    }

    #[test]
    fn the_list_has_a_limit() {
        let mut removals = Removals::default();
        for file in 0..=KEPT as u64 {
            removals.add(key(file));
        }
        assert_eq!(removals.last.len(), KEPT);
        assert!(!removals.include(key(0), 0));
        assert!(removals.include(key(1), 0));
        assert!(removals.include(key(KEPT as u64), KEPT as u64));
    }
}
