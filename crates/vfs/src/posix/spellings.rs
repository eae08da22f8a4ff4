//! The names of one directory, for a lookup without regard to case.

use std::collections::HashMap;

use super::inotify::Change;
use crate::fold;

/// Memory of a name besides its characters in bytes: hash, pointer, length, overhead of the
/// allocator and free slots of the table.
const NAME_BYTES: usize = 72;

/// Names by the hash of their folded form.
#[derive(Debug, Default)]
pub(super) struct Names {
    by_hash: HashMap<u64, Spellings>,
    bytes: usize,
}

/// Names with the same hash: almost always one.
#[derive(Debug)]
enum Spellings {
    One(Box<str>),
    More(Vec<Box<str>>),
}

impl Spellings {
    fn as_slice(&self) -> &[Box<str>] {
        match self {
            Self::One(name) => std::slice::from_ref(name),
            Self::More(names) => names,
        }
    }
}

impl Names {
    /// Memory of all names in bytes, estimated.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The spelling of a name: the exact name, else the smallest one with the same folded form.
    pub(super) fn spell(&self, name: &str, seed: u64) -> Option<&str> {
        let alike = self.by_hash.get(&fold::fold_hash(name, seed))?.as_slice();
        if let Some(exact) = alike.iter().find(|spelled| &***spelled == name) {
            return Some(exact);
        }
        alike
            .iter()
            .map(AsRef::as_ref)
            .filter(|spelled| fold::same(spelled, name))
            .min()
    }

    /// Adds a name. Does nothing if it exists.
    pub(super) fn add(&mut self, name: &str, seed: u64) {
        let hash = fold::fold_hash(name, seed);
        let mut names = self.take(hash);
        if !names.iter().any(|spelled| &**spelled == name) {
            names.push(name.into());
            self.bytes += name.len() + NAME_BYTES;
        }
        self.put(hash, names);
    }

    /// Removes a name. Does nothing if it does not exist.
    pub(super) fn remove(&mut self, name: &str, seed: u64) {
        let hash = fold::fold_hash(name, seed);
        let mut names = self.take(hash);
        if let Some(at) = names.iter().position(|spelled| &**spelled == name) {
            names.swap_remove(at);
            self.bytes -= name.len() + NAME_BYTES;
        }
        self.put(hash, names);
    }

    /// Applies a change of the directory.
    pub(super) fn apply(&mut self, change: &Change, seed: u64) {
        match change {
            Change::Added(name) => self.add(name, seed),
            Change::Removed(name) => self.remove(name, seed),
        }
    }

    fn take(&mut self, hash: u64) -> Vec<Box<str>> {
        match self.by_hash.remove(&hash) {
            None => Vec::new(),
            Some(Spellings::One(name)) => vec![name],
            Some(Spellings::More(names)) => names,
        }
    }

    fn put(&mut self, hash: u64, mut names: Vec<Box<str>>) {
        let spellings = match (names.pop(), names.is_empty()) {
            (None, _) => return,
            (Some(name), true) => Spellings::One(name),
            (Some(name), false) => {
                names.push(name);
                Spellings::More(names)
            }
        };
        self.by_hash.insert(hash, spellings);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exact_name_comes_before_one_that_folds_alike() {
        let mut names = Names::default();
        for name in ["readme", "README", "ReadMe"] {
            names.add(name, 1);
        }
        assert_eq!(names.spell("readme", 1), Some("readme"));
        assert_eq!(names.spell("ReadMe", 1), Some("ReadMe"));
        assert_eq!(names.spell("rEADmE", 1), Some("README"));
        names.remove("README", 1);
        assert_eq!(names.spell("rEADmE", 1), Some("ReadMe"));
        assert_eq!(names.spell("other", 1), None);
    }

    #[test]
    fn bytes_are_counted_once() {
        let mut names = Names::default();
        names.add("a", 1);
        let one = names.bytes();
        names.add("a", 1);
        assert_eq!(names.bytes(), one);
        names.add("A", 1);
        assert_eq!(names.bytes(), 2 * one);
        names.remove("b", 1);
        names.remove("a", 1);
        names.remove("a", 1);
        names.remove("A", 1);
        assert_eq!(names.bytes(), 0);
        assert!(names.by_hash.is_empty());
    }
}
