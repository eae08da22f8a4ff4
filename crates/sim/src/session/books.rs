//! The ledger of all sessions: the requests that were executed, and those that may have been.

use std::collections::BTreeSet;
use std::ops::Range;

use wire::SessionId;

use super::appends::Appends;
use super::names::Names;
use crate::check::contents::{Contents, Filling, Span};

/// Cells and their content.
pub(super) type Cells = (Range<u32>, Filling);

/// The requests that were executed, according to the responses.
#[derive(Debug, Default)]
pub(super) struct Books {
    tick: u64,
    pub(super) contents: Contents,
    pub(super) appends: Appends,
    pub(super) names: Names,
    /// Connections on which the server may still execute requests.
    live: BTreeSet<u64>,
    /// Writes that may still be executed, each with the connections that carried it.
    late: Vec<(u64, BTreeSet<u64>)>,
    next_late: u64,
    next_file: u64,
    /// Sessions that the server ended because their account was disabled, or for an administrator.
    pub(super) ended: BTreeSet<SessionId>,
}

impl Books {
    /// Returns the next tick of requests and responses.
    pub(super) fn tick(&mut self) -> u64 {
        self.tick += 1;
        self.tick
    }

    /// Returns a number for a new file.
    pub(super) fn next_file(&mut self) -> u64 {
        self.next_file += 1;
        self.next_file
    }

    /// Returns the span from `start` to now.
    pub(super) fn until_now(&mut self, start: u64) -> Span {
        let end = Some(self.tick());
        Span { start, end }
    }

    /// Records a write with a successful response.
    pub(super) fn wrote(&mut self, key: u64, what: Cells, start: u64) {
        let span = self.until_now(start);
        self.contents.wrote(Some(key), what, span, true);
    }

    /// Records a write without a response; these connections may still deliver it.
    pub(super) fn perhaps_wrote(
        &mut self,
        key: u64,
        what: Cells,
        start: u64,
        links: &BTreeSet<u64>,
    ) {
        self.next_late += 1;
        let token = self.next_late;
        self.contents.lost(Some(key), what, start, token);
        self.late.push((token, links & &self.live));
        self.settle();
    }

    /// A file may have another name; these connections may still deliver the rename.
    pub(super) fn perhaps_at(&mut self, file: u64, name: Option<&str>, links: &BTreeSet<u64>) {
        self.names.perhaps(file, name, links & &self.live);
    }

    /// A connection is established.
    pub(super) fn born(&mut self, link: u64) {
        self.live.insert(link);
    }

    /// The server executes no more requests of a connection.
    pub(super) fn buried(&mut self, link: u64) {
        self.live.remove(&link);
        let now = self.tick();
        self.names.buried(link, now);
        for (_, links) in &mut self.late {
            links.remove(&link);
        }
        self.settle();
    }

    fn settle(&mut self) {
        let now = self.tick();
        let is_over = |(_, links): &(u64, BTreeSet<u64>)| links.is_empty();
        for (token, _) in self.late.iter().filter(|late| is_over(late)) {
            self.contents.settle(*token, now);
        }
        self.late.retain(|late| !is_over(late));
    }
}
