//! The state of the thread that reads the kernel's events.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use proto::file::LocalEvent;
use ring::{Entry, Event, FileHandle};

use super::shared::Shared;
use crate::Listener;

/// What is remembered of events until the queue is empty, at most: names that a scan told and an
/// event may tell again; what was renamed; what was not found.
pub(super) const REMEMBERED_MAX: usize = 65_536;

/// How long to wait where all events were our own, so that they do not wake us one by one: the
/// kernel makes one of those that are alike. What others do is told that much later at most.
pub(super) const GATHER: Duration = Duration::from_millis(10);

/// The thread.
pub(super) struct Watcher {
    pub(super) shared: Arc<Shared>,
    pub(super) listener: Listener,
    /// To be told next.
    pub(super) outgoing: Vec<LocalEvent>,
    /// What a scan told: events that tell it again are in the queue by then.
    pub(super) found: HashSet<(FileHandle, String)>,
    /// What was renamed since the queue was empty, and from where.
    pub(super) moved: HashSet<(FileHandle, Option<Entry>)>,
    /// Directories that were not where they were looked for: events to come may say where they are.
    pub(super) misplaced: Vec<Misplaced>,
    /// How often in a row they were looked for.
    pub(super) retries: u32,
    /// Whether events were lost, or came so that nobody can tell what happened.
    pub(super) has_overflowed: bool,
}

/// What to do with what a directory holds that just got its mark.
#[derive(Clone, Copy)]
pub(super) enum Scan {
    /// It is new, and so is all that is in it.
    Report,
    /// It was there before; what changed since then, and before its mark, is lost.
    Since(Duration),
    /// It came from elsewhere, with what is in it: as if it had been there before it came.
    MovedIn,
    /// All that was known may be wrong.
    Rescan,
}

/// A directory that was not where it was looked for.
pub(super) enum Misplaced {
    /// One of the tree, and how to read it.
    Known(FileHandle, Scan),
    /// A new one, by the directory and the name that it had.
    New(Event, FileHandle, String, Scan),
}

impl Watcher {
    pub(super) fn new(shared: Arc<Shared>, listener: Listener) -> Self {
        Self {
            shared,
            listener,
            outgoing: Vec::new(),
            found: HashSet::new(),
            moved: HashSet::new(),
            misplaced: Vec::new(),
            retries: 0,
            has_overflowed: false,
        }
    }
}
