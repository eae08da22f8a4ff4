//! Listings of directories that clients cache under leases.
//!
//! A client with READ_CACHING on a directory may list the directory from its cache. A request of
//! any client shows that a name exists or not. If it started after the listing was complete, and
//! differs from the listing, then a create, rename or delete has completed in between, which breaks
//! the lease. So no listing is used after the end of that request, unless a break is posted and has
//! not reached the client. The check is exact if the disk completes every operation at once, and if
//! no directory is renamed or deleted.

use std::collections::{BTreeMap, BTreeSet};

use crate::check::contents::Span;
use crate::check::{Check, ensure};

/// The names in a directory at the time of a request.
#[derive(Clone, Debug)]
pub(crate) struct Listing {
    pub(crate) names: BTreeSet<String>,
    pub(crate) span: Span,
}

/// A request that shows whether a name exists.
#[derive(Clone, Copy, Debug)]
struct Observation {
    exists: bool,
    span: Span,
}

/// What clients have observed of the names in all directories.
#[derive(Debug, Default)]
pub(crate) struct Directories {
    /// By directory and name.
    observations: BTreeMap<(String, String), Vec<Observation>>,
    /// The first use of a stale listing.
    failure: Option<String>,
}

impl Directories {
    /// A request shows that a file exists or not.
    pub(crate) fn observe(&mut self, path: &str, exists: bool, span: Span) {
        let Some((directory, name)) = path.rsplit_once('\\') else {
            return;
        };
        let key = (directory.to_owned(), name.to_owned());
        let observations = self.observations.entry(key).or_default();
        observations.push(Observation { exists, span });
    }

    /// A client uses a cached listing. It may miss the changes that were complete after the tick
    /// `since`.
    pub(crate) fn list(&mut self, directory: &str, listing: &Listing, since: u64) {
        let failure = self.compare(directory, listing, since).err();
        self.failure = self.failure.take().or(failure);
    }

    /// Checks that no client has used a stale listing.
    pub(crate) fn check(&self) -> Check {
        self.failure.clone().map_or(Ok(()), Err)
    }

    fn compare(&self, directory: &str, listing: &Listing, since: u64) -> Check {
        let of_directory = self.observations.iter();
        let of_directory = of_directory.filter(|((parent, _), _)| parent == directory);
        for ((_, name), observations) in of_directory {
            let is_listed = listing.names.contains(name);
            let newer = observations.iter().find(|it| {
                let is_later = Some(it.span.start) > listing.span.end;
                let is_complete = it.span.end.is_some_and(|end| end < since);
                is_later && is_complete && it.exists != is_listed
            });
            ensure(newer.is_none(), || {
                format!("a stale listing of {directory}: {listing:?}, but {name}: {newer:?}")
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start: u64, end: u64) -> Span {
        let end = Some(end);
        Span { start, end }
    }

    #[test]
    fn a_listing_without_a_later_change_is_found() {
        let mut directories = Directories::default();
        let names = BTreeSet::from(["a".to_owned()]);
        let listing = Listing {
            names,
            span: span(1, 2),
        };
        let check = |directories: &Directories, since| directories.compare("d", &listing, since);
        directories.observe("d\\a", true, span(3, 4));
        directories.observe("d\\b", false, span(3, 4));
        directories.observe("e\\b", true, span(3, 4));
        directories.observe("d\\b", true, span(2, 4));
        assert_eq!(check(&directories, 9), Ok(()));
        directories.observe("d\\b", true, span(5, 6));
        assert_eq!(check(&directories, 6), Ok(()));
        assert!(check(&directories, 7).is_err());
    }

    #[test]
    fn a_listing_with_a_deleted_name_is_found() {
        let mut directories = Directories::default();
        let names = BTreeSet::from(["a".to_owned()]);
        let listing = Listing {
            names,
            span: span(1, 2),
        };
        directories.observe("d\\a", false, span(3, 4));
        directories.list("d", &listing, 3);
        assert_eq!(directories.check(), Ok(()));
        directories.list("d", &listing, 5);
        directories.list("d", &listing, 3);
        assert!(directories.check().is_err());
    }
}
