//! What a command was given, once it is known what that names.

use super::{Facts, Kind, Place};
use crate::exit::Outcome;

/// A place that was named, or that matches a pattern.
pub(crate) struct Found {
    /// Where it is.
    pub(crate) place: Place,
    seen: Option<Facts>,
}

impl Found {
    /// What was named.
    pub(crate) fn named(place: Place) -> Self {
        Self { place, seen: None }
    }

    /// What a listing has shown. Of a link that says nothing of what it leads to.
    pub(super) fn listed(place: Place, facts: Facts) -> Self {
        let seen = (facts.kind != Kind::Link).then_some(facts);
        Self { place, seen }
    }

    /// What is known of it, with links followed; it must be there.
    pub(crate) fn facts(&self) -> Outcome<Facts> {
        match self.seen {
            Some(facts) => Ok(facts),
            None => self.place.facts(true),
        }
    }

    /// Whether it is a folder, with links followed; nothing if it is not there.
    pub(crate) fn is_folder(&self) -> Outcome<Option<bool>> {
        let facts = match self.seen {
            Some(facts) => Some(facts),
            None => self.place.look(true)?,
        };
        Ok(facts.map(|facts| facts.is_folder()))
    }

    /// What is known of itself, with no link followed; it must be there. A server may list a link
    /// as what it leads to.
    pub(crate) fn own_facts(&self) -> Outcome<Facts> {
        match self.seen {
            Some(facts) if !facts.is_folder() => Ok(facts),
            _ => self.place.facts(false),
        }
    }
}
