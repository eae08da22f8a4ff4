//! The opens of a session that have an oplock or a lease. \[MS-SMB2\] 3.2.1.6

use alloc::collections::{BTreeMap, VecDeque};

use wire::access::OplockLevel;
use wire::{FileId, Guid, TreeId};

use super::request::Step;

/// What an open lets us cache.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caching {
    /// Its tree: the acknowledgement names it.
    pub(super) tree: Option<TreeId>,
    /// Whether the share asks for sealing.
    pub(super) seal: bool,
    /// The oplock.
    pub(super) level: OplockLevel,
    /// The lease, where the level is LEASE.
    pub(super) lease: Option<Guid>,
    /// Whether the driver acknowledges.
    pub(super) driver_acknowledges: bool,
}

/// Breaks that are kept for opens that are not known yet.
const EARLY_MAX: usize = 16;

/// What the opens of a session let us cache. As long as the driver's opens.
#[derive(Debug, Default)]
pub(super) struct CachingTable {
    pub(super) opens: BTreeMap<FileId, Caching>,
    /// Breaks that came on one channel before the answer to the CREATE on another: they are
    /// acknowledged when that is there. The oldest go first, and the server waits for those in
    /// vain.
    early: VecDeque<Early>,
}

/// A break of something that is not known yet.
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

    /// The acknowledgement that an open owes from the start.
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
