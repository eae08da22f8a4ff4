//! The state of the thread that reads the kernel's events.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use proto::file::LocalEvent;
use ring::{Entry, Event, FileHandle};

use super::shared::Shared;
use crate::Listener;

/// Maximum number of remembered items of each kind until the queue is empty: reported names that an
/// event may repeat, renames, and misplaced directories.
pub(super) const REMEMBERED_MAX: usize = 65_536;

/// Pause after a batch of events that were all caused by this process, so that the kernel can merge
/// further ones. It delays the report of other changes by this time at most.
pub(super) const GATHER: Duration = Duration::from_millis(10);

/// The state of the thread.
pub(super) struct Watcher {
    pub(super) shared: Arc<Shared>,
    pub(super) listener: Listener,
    /// Changes to report next.
    pub(super) outgoing: Vec<LocalEvent>,
    /// Names that a scan reported. An event that repeats a report is already in the queue.
    pub(super) found: HashSet<(FileHandle, String)>,
    /// Renamed files since the queue was empty, with their old locations.
    pub(super) moved: HashSet<(FileHandle, Option<Entry>)>,
    /// Directories that were not at their expected locations; later events may contain their
    /// locations.
    pub(super) misplaced: Vec<Misplaced>,
    /// Number of consecutive searches for them.
    pub(super) retries: u32,
    /// Whether events were lost, or arrived in an ambiguous order.
    pub(super) has_overflowed: bool,
}

/// How to treat the contents of a directory that has just got its mark.
#[derive(Clone, Copy)]
pub(super) enum Scan {
    /// The directory is new: report all its contents.
    Report,
    /// The directory existed before: changes since this time and before its mark are lost.
    Since(Duration),
    /// The directory was moved here with its contents: they count as existing before the move.
    MovedIn,
    /// The known contents may be wrong: read everything again.
    Rescan,
}

/// A directory that was not at its expected location.
pub(super) enum Misplaced {
    /// A directory in the tree, and how to treat its contents.
    Known(FileHandle, Scan),
    /// A new directory: its event, its parent, its name, and how to treat its contents.
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
