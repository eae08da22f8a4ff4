//! A map with a limit. An insertion into a full map removes the entry that is unused for longest.

use std::collections::BTreeMap;

/// A map with a limit. An insertion into a full map removes the entry that is unused for longest.
#[derive(Debug)]
pub(crate) struct RecentMap<K, V> {
    limit: usize,
    /// Number of the last use. Each use has the next number.
    last_use: u64,
    entries: BTreeMap<K, (u64, V)>,
    by_use: BTreeMap<u64, K>,
}

impl<K: Ord + Clone, V> RecentMap<K, V> {
    /// An empty map for at most `limit` entries, at least one.
    pub(crate) fn new(limit: usize) -> Self {
        assert!(limit > 0, "a map holds at least one entry");
        Self {
            limit,
            last_use: 0,
            entries: BTreeMap::new(),
            by_use: BTreeMap::new(),
        }
    }

    /// The value of a key. This is not a use.
    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.entries.get(key).map(|(_, value)| value)
    }

    /// The value of a key, which becomes the most recently used one.
    pub(crate) fn use_mut(&mut self, key: &K) -> Option<&mut V> {
        let (used, value) = self.entries.get_mut(key)?;
        self.by_use.remove(used);
        self.last_use += 1;
        *used = self.last_use;
        self.by_use.insert(self.last_use, key.clone());
        Some(value)
    }

    /// The same. Inserts the value of `new` if the key has none.
    pub(crate) fn use_or_insert_with(&mut self, key: &K, new: impl FnOnce() -> V) -> &mut V {
        if !self.entries.contains_key(key) {
            if self.entries.len() >= self.limit {
                self.remove_oldest();
            }
            self.last_use += 1;
            self.by_use.insert(self.last_use, key.clone());
            self.entries.insert(key.clone(), (self.last_use, new()));
        }
        self.use_mut(key).expect("inserted above")
    }

    fn remove_oldest(&mut self) {
        if let Some((_, key)) = self.by_use.pop_first() {
            self.entries.remove(&key);
        }
    }

    /// Number of entries.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        assert_eq!(self.entries.len(), self.by_use.len());
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_map_removes_the_entry_that_is_unused_for_longest() {
        let mut map = RecentMap::new(2);
        for key in ["a", "b"] {
            map.use_or_insert_with(&key, || key.len());
        }
        assert!(map.use_mut(&"a").is_some());
        map.use_or_insert_with(&"c", || 1);
        assert_eq!(map.len(), 2);
        assert!(map.get(&"a").is_some() && map.get(&"b").is_none());
    }
}
