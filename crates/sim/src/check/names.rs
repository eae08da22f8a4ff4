//! Names of files while clients with and without the SMB3 POSIX extensions create, rename, replace
//! and delete them: every response shows names that may exist at that time.
//!
//! The names of a file are a register, like a cell of its contents. A client that creates or
//! renames a file changes it, and so does a client that removes the name through a POSIX open. A
//! response shows that a name leads to a file, or to some file, or to none. All responses are
//! compared at the end of the run, because a client may receive its response after others have seen
//! the effect. The check requires that no directory is renamed or deleted, that no file has two
//! names, and that no client withdraws a deletion.

use std::collections::BTreeMap;

use crate::check::contents::{Key, Span};
use crate::check::opens::Holder;
use crate::check::{Check, ensure};

/// What a response shows of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// No file has it.
    Nothing,
    /// Some file has it.
    Something,
    /// The file with this number has it.
    File(u64),
}

/// A file took a name, or perhaps did.
#[derive(Debug)]
struct Arrival {
    key: Key,
    name: String,
    span: Span,
    is_certain: bool,
    /// The connection with which the response was lost.
    connection: Option<u64>,
}

/// An open marked its file for deletion, or perhaps did: the name may go from then on.
#[derive(Debug)]
struct Mark {
    /// The file; `None` for any file with the name.
    key: Key,
    name: Option<String>,
    /// Tick at which the client sent the request.
    start: u64,
    by: Holder,
}

/// An open with a deletion of POSIX semantics was closed: the name is removed, unless the file was
/// marked for deletion before.
#[derive(Debug)]
struct Removal {
    key: u64,
    by: Holder,
    span: Span,
}

#[derive(Debug)]
struct Observation {
    name: String,
    shown: Shown,
    span: Span,
}

/// All changes of names in a run, and what clients saw of them.
#[derive(Debug, Default)]
pub(crate) struct Names {
    arrivals: Vec<Arrival>,
    marks: Vec<Mark>,
    removals: Vec<Removal>,
    observations: Vec<Observation>,
}

impl Names {
    /// A file was created with a name or renamed to it.
    /// If that is uncertain, the request has failed, and `key` is `None` for an unknown file.
    pub(crate) fn took(&mut self, key: Key, name: &str, span: Span, is_certain: bool) {
        self.arrivals.push(Arrival {
            key,
            name: name.to_owned(),
            span,
            is_certain,
            connection: None,
        });
    }

    /// The response to a CREATE or a rename was lost with its connection. `key` is the file that
    /// was renamed.
    pub(crate) fn perhaps_took(&mut self, key: Key, name: &str, start: u64, connection: u64) {
        self.arrivals.push(Arrival {
            key,
            name: name.to_owned(),
            span: Span { start, end: None },
            is_certain: false,
            connection: Some(connection),
        });
    }

    /// An open marked its file for deletion, or perhaps did: the name may go from then on. `key`
    /// and `name` are what the client knows of the file.
    pub(crate) fn marked(&mut self, key: Key, name: Option<&str>, start: u64, by: Holder) {
        self.marks.push(Mark {
            key,
            name: name.map(str::to_owned),
            start,
            by,
        });
    }

    /// The open that marked a file for deletion with POSIX semantics was closed.
    pub(crate) fn removed(&mut self, key: u64, span: Span, by: Holder) {
        self.removals.push(Removal { key, by, span });
    }

    /// A response shows a name.
    pub(crate) fn observe(&mut self, name: &str, shown: Shown, span: Span) {
        let name = name.to_owned();
        self.observations.push(Observation { name, shown, span });
    }

    /// All requests of a connection have had their effect. A mark for deletion has it later.
    pub(crate) fn settle(&mut self, connection: u64, now: u64) {
        let lost = self.arrivals.iter_mut();
        for arrival in lost.filter(|it| it.connection == Some(connection)) {
            arrival.span.end.get_or_insert(now);
        }
    }

    /// Checks that every response is possible. Returns the number of responses, and of names that
    /// certainly went although opens of their file may have stayed.
    pub(crate) fn check(&self) -> Check<(u64, u64)> {
        let certain = self.removals.iter().filter(|it| self.is_sole(it));
        let mut removals: BTreeMap<u64, Vec<&Removal>> = BTreeMap::new();
        certain.for_each(|it| removals.entry(it.key).or_default().push(it));
        for observation in &self.observations {
            let is_possible = match observation.shown {
                Shown::Nothing => self.may_be_free(observation),
                Shown::Something => self.may_be_used(observation, None, &removals),
                Shown::File(key) => self.may_be_used(observation, Some(key), &removals),
            };
            ensure(is_possible, || {
                let name = &observation.name;
                let arrivals = self.arrivals.iter().filter(|it| it.name == *name);
                let arrivals: Vec<_> = arrivals.collect();
                format!("wrong about names: {observation:?}, but {arrivals:?}, {removals:?}")
            })?;
        }
        let removed = removals.values().map(Vec::len).sum::<usize>();
        Ok((self.observations.len() as u64, removed as u64))
    }

    /// Returns whether no other open had marked the file for deletion: a mark stays that of the
    /// open that set it first.
    fn is_sole(&self, removal: &Removal) -> bool {
        let end = removal.span.end.unwrap_or(u64::MAX);
        !self.marks.iter().any(|mark| {
            let is_file = mark.key.is_none_or(|key| key == removal.key);
            is_file && mark.by != removal.by && mark.start <= end
        })
    }

    /// Returns whether a file, or this file, may have the name during the request.
    fn may_be_used(
        &self,
        observation: &Observation,
        key: Key,
        removals: &BTreeMap<u64, Vec<&Removal>>,
    ) -> bool {
        let Observation { name, span, .. } = observation;
        let end = span.end.unwrap_or(u64::MAX);
        let may_be_it = |it: &&Arrival| {
            let is_file = key.is_none() || it.key.is_none() || it.key == key;
            is_file && it.name == *name && it.span.start <= end
        };
        let mut candidates = self.arrivals.iter().filter(may_be_it);
        candidates.any(|candidate| !self.is_over(candidate, span.start, removals))
    }

    /// Returns whether a later change was complete before this tick.
    fn is_over(&self, it: &Arrival, before: u64, removals: &BTreeMap<u64, Vec<&Removal>>) -> bool {
        let Some(end) = it.span.end else {
            return false;
        };
        let is_between = |span: Span| span.start > end && span.end.is_some_and(|end| end < before);
        let is_moved = self.arrivals.iter().any(|later| {
            let concerns = later.name == it.name || later.key == it.key;
            later.is_certain && concerns && is_between(later.span)
        });
        let removals = it.key.and_then(|key| removals.get(&key));
        is_moved || removals.into_iter().flatten().any(|it| is_between(it.span))
    }

    /// Returns whether no file may have the name during the request.
    fn may_be_free(&self, observation: &Observation) -> bool {
        let Observation { name, span, .. } = observation;
        let mut arrivals = self.arrivals.iter().filter(|it| it.name == *name);
        !arrivals.any(|it| {
            let is_before = it.span.end.is_some_and(|end| end < span.start);
            it.is_certain && is_before && !self.may_have_left(it, span.end.unwrap_or(u64::MAX))
        })
    }

    /// Returns whether a file may have lost its name until this tick.
    fn may_have_left(&self, it: &Arrival, until: u64) -> bool {
        let is_meanwhile =
            |span: Span| span.start <= until && span.end.is_none_or(|end| end >= it.span.start);
        let is_replaced = self.arrivals.iter().any(|other| {
            let concerns = (other.name == it.name) != (other.key == it.key);
            concerns && is_meanwhile(other.span)
        });
        let is_removed = self.marks.iter().any(|mark| {
            let is_file = mark.key.is_none() || mark.key == it.key;
            let has_name = mark.name.as_ref().is_none_or(|name| *name == it.name);
            is_file && has_name && mark.start <= until
        });
        is_replaced || is_removed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Holder = (0, 0);
    const OTHER: Holder = (1, 0);

    fn span(start: u64, end: u64) -> Span {
        let end = Some(end);
        Span { start, end }
    }

    /// File 1 is created as "a" and renamed to "b"; file 2 is created as "c" and replaces it.
    fn names() -> Names {
        let mut names = Names::default();
        names.took(Some(1), "a", span(1, 2), true);
        names.took(Some(1), "b", span(11, 12), true);
        names.took(Some(2), "c", span(15, 16), true);
        names.took(Some(2), "b", span(21, 22), true);
        names
    }

    fn is_possible(mut names: Names, name: &str, shown: Shown, span: Span) -> bool {
        names.observe(name, shown, span);
        names.check().is_ok()
    }

    #[test]
    fn a_name_shows_its_last_file_or_one_that_arrives() {
        use Shown::{File, Nothing, Something};
        let good = [
            ("a", File(1), span(3, 4)),
            ("a", Something, span(10, 13)),
            ("a", Nothing, span(10, 13)),
            ("a", Nothing, span(0, 1)),
            ("b", File(1), span(13, 14)),
            ("b", File(1), span(20, 23)),
            ("b", File(2), span(23, 24)),
            ("d", Nothing, span(23, 24)),
        ];
        for (name, shown, span) in good {
            assert!(is_possible(names(), name, shown, span), "{name} {shown:?}");
        }
    }

    #[test]
    fn a_wrong_name_is_found() {
        use Shown::{File, Nothing, Something};
        let bad = [
            ("a", Nothing, span(3, 4)),
            ("a", File(2), span(3, 4)),
            ("a", Something, span(13, 14)),
            ("b", File(1), span(23, 24)),
            ("b", Nothing, span(23, 24)),
            ("d", Something, span(23, 24)),
        ];
        for (name, shown, span) in bad {
            assert!(!is_possible(names(), name, shown, span), "{name} {shown:?}");
        }
    }

    #[test]
    fn a_name_is_free_after_its_removal() {
        let removed = || {
            let mut names = names();
            names.marked(Some(2), None, 31, ONE);
            names.removed(2, span(35, 36), ONE);
            names
        };
        assert!(!is_possible(removed(), "b", Shown::Nothing, span(29, 30)));
        assert!(is_possible(removed(), "b", Shown::Nothing, span(33, 34)));
        assert!(is_possible(removed(), "b", Shown::Something, span(34, 37)));
        assert!(!is_possible(removed(), "b", Shown::Something, span(37, 38)));
        let marked_before = || {
            let mut names = removed();
            names.marked(Some(2), None, 25, OTHER);
            names
        };
        assert!(is_possible(
            marked_before(),
            "b",
            Shown::Something,
            span(37, 38)
        ));
        assert!(is_possible(
            marked_before(),
            "b",
            Shown::Nothing,
            span(37, 38)
        ));
    }

    #[test]
    fn a_lost_request_may_have_its_effect_until_its_connection_has_ended() {
        let lost = || {
            let mut names = names();
            names.perhaps_took(None, "e", 31, 7);
            names.perhaps_took(Some(2), "f", 31, 7);
            names.settle(7, 40);
            names
        };
        for name in ["b", "e", "f"] {
            for shown in [Shown::Nothing, Shown::Something] {
                assert!(is_possible(lost(), name, shown, span(41, 42)), "{name}");
            }
        }
        assert!(!is_possible(lost(), "e", Shown::Something, span(29, 30)));
        assert!(!is_possible(lost(), "e", Shown::File(1), span(29, 30)));
    }
}
