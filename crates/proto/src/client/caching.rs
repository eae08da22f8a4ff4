//! The opens of a session that have an oplock or a lease. \[MS-SMB2\] 3.2.1.6

use alloc::collections::{BTreeMap, VecDeque};

use wire::access::OplockLevel;
use wire::{FileId, Guid, TreeId};

use super::request::Step;

/// Caching state of an open.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caching {
    /// Tree of the open, for the acknowledgment.
    pub(super) tree: Option<TreeId>,
    /// Whether the share requires encryption.
    pub(super) encrypt: bool,
    /// Oplock level.
    pub(super) level: OplockLevel,
    /// Lease key, if the level is LEASE.
    pub(super) lease: Option<Guid>,
    /// Whether the driver acknowledges breaks.
    pub(super) driver_acknowledges: bool,
}

/// Largest count of stored breaks of unknown opens.
const EARLY_MAX: usize = 16;

/// Caching state of the opens of a session. As long as the list of the driver's opens.
#[derive(Debug, Default)]
pub(super) struct CachingTable {
    pub(super) opens: BTreeMap<FileId, Caching>,
    /// Breaks that arrived on one channel before the response to the CREATE on another one. The
    /// response triggers their acknowledgment. When there are too many, the oldest is dropped, and
    /// the server waits for its acknowledgment until a timeout.
    early: VecDeque<Early>,
}

/// A break of an unknown open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Early {
    Oplock(FileId, OplockLevel),
    Lease(Guid, u32),
}

impl CachingTable {
    pub(super) fn keep_early(&mut self, early: Early) {
        if self.early.len() == EARLY_MAX {
            self.early.pop_front();
        }
        self.early.push_back(early);
    }

    /// Adds an open. Returns the acknowledgment of a break that arrived before.
    pub(super) fn insert(&mut self, id: FileId, mut caching: Caching) -> Option<Step> {
        let is_meant = |early: &Early| match *early {
            Early::Oplock(file, _) => file == id,
            Early::Lease(key, _) => caching.lease == Some(key),
        };
        let index = self.early.iter().position(is_meant);
        let early = index.and_then(|index| self.early.remove(index));
        let step = early.map(|early| match early {
            Early::Oplock(file, level) => {
                caching.level = level;
                Step::AcknowledgeOplock { file, level }
            }
            Early::Lease(key, state) => Step::AcknowledgeLease { key, state },
        });
        self.opens.insert(id, caching);
        step.filter(|_| !caching.driver_acknowledges)
    }
}
