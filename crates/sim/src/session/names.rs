//! Names: each create, rename and delete took effect exactly once.

use std::collections::{BTreeMap, BTreeSet};

use crate::check::{Check, ensure};

/// A possible name of a file; `None` if the file has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Places {
    possible: BTreeSet<Option<String>>,
    /// Names that only abandoned requests can still set.
    late: Vec<Late>,
}

/// A name that the server may still give to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Late {
    name: Option<String>,
    /// The connections that carried the request.
    links: BTreeSet<u64>,
    /// Tick at which the last of them ended.
    end: Option<u64>,
}

/// The possible names of the files, by the numbers of the ledger.
#[derive(Debug, Default)]
pub(super) struct Names {
    files: BTreeMap<u64, Places>,
    /// Every name that a file had or may have had.
    known: BTreeMap<String, u64>,
}

impl Names {
    /// A file certainly has this name, except for requests after `start`.
    pub(super) fn settled(&mut self, file: u64, name: Option<&str>, start: u64) {
        self.learn(file, name);
        let places = self.files.entry(file).or_default();
        (places.late).retain(|late| late.end.is_none_or(|end| end > start));
        places.possible = BTreeSet::from([name.map(str::to_owned)]);
        let late = places.late.iter().map(|late| late.name.clone());
        places.possible.extend(late);
    }

    /// A file may have this name too, or may get it while the server executes requests of these
    /// connections.
    pub(super) fn perhaps(&mut self, file: u64, name: Option<&str>, links: BTreeSet<u64>) {
        self.learn(file, name);
        let places = self.files.entry(file).or_default();
        if places.possible.is_empty() {
            places.possible.insert(None);
        }
        places.possible.insert(name.map(str::to_owned));
        if !links.is_empty() {
            places.late.push(Late {
                name: name.map(str::to_owned),
                links,
                end: None,
            });
        }
    }

    /// The server executes no more requests of a connection.
    pub(super) fn buried(&mut self, link: u64, now: u64) {
        for late in self.files.values_mut().flat_map(|places| &mut places.late) {
            late.links.remove(&link);
            if late.links.is_empty() {
                late.end.get_or_insert(now);
            }
        }
    }

    fn learn(&mut self, file: u64, name: Option<&str>) {
        if let Some(name) = name {
            self.known.insert(name.into(), file);
        }
    }

    /// Returns all possible names.
    pub(super) fn all(&self) -> Vec<String> {
        self.known.keys().cloned().collect()
    }

    /// Checks that each file has exactly one possible name; `found` contains all existing names.
    /// Returns the number of files.
    pub(super) fn check(&self, found: &BTreeSet<String>) -> Check<usize> {
        for (file, places) in &self.files {
            let names = self.known.iter().filter(|(_, owner)| *owner == file);
            let there: Vec<&String> = (names.map(|(name, _)| name))
                .filter(|name| found.contains(*name))
                .collect();
            ensure(there.len() < 2, || {
                format!("file {file} has the names {there:?}")
            })?;
            let place = there.first().map(|name| (*name).clone());
            ensure(places.possible.contains(&place), || {
                format!("file {file} is at {place:?}, and not at {places:?}")
            })?;
        }
        Ok(self.files.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(names: &Names, found: &[&str]) -> Check<usize> {
        names.check(&found.iter().map(|name| (*name).into()).collect())
    }

    #[test]
    fn a_file_is_where_it_was_put_last() {
        let mut names = Names::default();
        names.settled(1, Some("a"), 1);
        names.settled(1, Some("b"), 2);
        assert_eq!(check(&names, &["b"]), Ok(1));
        for bad in [&[][..], &["a"], &["a", "b"]] {
            assert!(check(&names, bad).is_err(), "{bad:?}");
        }
        names.settled(1, None, 3);
        assert_eq!(check(&names, &[]), Ok(1));
        assert!(check(&names, &["b"]).is_err());
    }

    #[test]
    fn what_was_given_up_may_be_and_may_come_late() {
        let mut names = Names::default();
        names.settled(1, Some("a"), 1);
        names.perhaps(1, Some("b"), BTreeSet::new());
        assert_eq!(check(&names, &["a"]), Ok(1));
        assert_eq!(check(&names, &["b"]), Ok(1));
        assert!(check(&names, &["a", "b"]).is_err());
        names.settled(1, Some("c"), 2);
        assert!(check(&names, &["b"]).is_err());
        names.perhaps(1, Some("d"), BTreeSet::from([7]));
        names.settled(1, Some("e"), 3);
        assert_eq!(check(&names, &["d"]), Ok(1));
        names.buried(7, 5);
        names.settled(1, Some("f"), 4);
        assert_eq!(check(&names, &["d"]), Ok(1));
        names.settled(1, Some("f"), 6);
        assert!(check(&names, &["d"]).is_err());
    }

    #[test]
    fn what_perhaps_was_made_may_be_nowhere() {
        let mut names = Names::default();
        names.perhaps(1, Some("a"), BTreeSet::new());
        assert_eq!(check(&names, &[]), Ok(1));
        assert_eq!(check(&names, &["a"]), Ok(1));
    }
}
