//! Byte-range locks of one file: which there are, and what they forbid. \[MS-FSA\] 2.1.4.10,
//! 2.1.5.8, 2.1.5.9
//!
//! No state but the locks, no waiting. Thousands of locks stay fast: ranges are kept by the power
//! of two that their length reaches. All overlapping ranges then start within a known stretch, one
//! for each power that occurs.

mod posix;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use crate::file::LocalOpen;

/// How the locks of an open behave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LockFlavor {
    /// As \[MS-FSA\] has it: each lock is unlocked as it was locked, and binds reads and writes.
    Windows,
    /// As fcntl(2) has it, for opens of the SMB3 POSIX extensions.
    Posix,
}

/// A range of bytes that ends at offset 2^64 - 1 at the latest. It may be empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ByteRange {
    offset: u64,
    length: u64,
}

/// The accesses of other opens that a lock forbids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LockKind {
    /// To read and to write.
    Exclusive,
    /// To write: the owner itself, too.
    Shared,
}

/// An access to the bytes of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RangeAccess {
    Read,
    Write,
}

/// The locks of one file. An owner is an open: no two opens share a lock.
#[derive(Debug, Default)]
pub(super) struct ByteRangeLocks {
    owners: BTreeMap<LocalOpen, Owned>,
    exclusive: Ranges,
    shared: Ranges,
    /// Locks in all.
    count: usize,
}

/// The locks of one open. The same range may be locked several times: then it is unlocked as often.
#[derive(Debug, Default)]
struct Owned {
    locks: BTreeMap<(LockKind, ByteRange), usize>,
    /// Locks in all.
    count: usize,
    /// Whether the open is one of the SMB3 POSIX extensions.
    is_posix: bool,
}

/// Ranges and their owners, each once.
#[derive(Debug, Default)]
struct Ranges {
    by_power: BTreeSet<Entry>,
}

/// A range in the order in which it is sought.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    /// Binary digits of the length.
    power: u32,
    range: ByteRange,
    owner: LocalOpen,
}

impl ByteRange {
    /// A range; `None` where it goes beyond the last offset.
    pub(crate) fn new(offset: u64, length: u64) -> Option<Self> {
        let last = length.saturating_sub(1);
        offset.checked_add(last)?;
        Some(Self { offset, length })
    }

    /// A range that is cut where it goes beyond the last offset.
    pub(crate) fn clamped(offset: u64, length: u64) -> Self {
        let length = length.min((u64::MAX - offset).saturating_add(1));
        Self { offset, length }
    }

    /// The first byte.
    pub(crate) fn offset(self) -> u64 {
        self.offset
    }

    /// Bytes.
    pub(crate) fn length(self) -> u64 {
        self.length
    }

    /// Whether two ranges have a byte in common. An empty range lies between two bytes, and is
    /// overlapped by a range that holds both.
    pub(super) fn overlaps(self, other: Self) -> bool {
        match (self.last(), other.last()) {
            (Some(last), Some(other_last)) => self.offset <= other_last && other.offset <= last,
            // Nothing lies before the first byte.
            _ => false,
        }
    }

    /// The last byte, or the byte before an empty range.
    fn last(self) -> Option<u64> {
        match self.length {
            0 => self.offset.checked_sub(1),
            length => Some(self.offset + (length - 1)),
        }
    }

    fn power(self) -> u32 {
        u64::BITS - self.length.leading_zeros()
    }
}

impl ByteRangeLocks {
    /// Locks in all.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Locks of one open.
    pub(super) fn len_of(&self, owner: LocalOpen) -> usize {
        self.owners.get(&owner).map_or(0, |owned| owned.count)
    }

    /// The locks of one open, at most `limit`. A lock that is held twice appears twice.
    pub(super) fn of(&self, owner: LocalOpen, limit: usize) -> Vec<(ByteRange, LockKind)> {
        let Some(owned) = self.owners.get(&owner) else {
            return Vec::new();
        };
        let each = owned
            .locks
            .iter()
            .flat_map(|(&(kind, range), &count)| core::iter::repeat_n((range, kind), count));
        each.take(limit).collect()
    }

    /// Returns whether a lock is compatible with the existing locks. An open may add a shared lock
    /// to its own exclusive lock; an exclusive lock is compatible with no other lock.
    pub(super) fn admits(&self, owner: LocalOpen, range: ByteRange, kind: LockKind) -> bool {
        let by_others = |other: LocalOpen| other != owner;
        match kind {
            LockKind::Shared => !self.exclusive.any(range, by_others),
            LockKind::Exclusive => {
                !self.exclusive.any(range, |_| true) && !self.shared.any(range, |_| true)
            }
        }
    }

    /// Whether a lock forbids an open to read or write a range. \[MS-FSA\] 2.1.4.10
    pub(super) fn forbids(&self, owner: LocalOpen, range: ByteRange, access: RangeAccess) -> bool {
        let is_alone = self.owners.len() == 1 && self.owners.contains_key(&owner);
        let by_others = |other: LocalOpen| other != owner;
        let excludes = !is_alone && self.exclusive.any(range, by_others);
        excludes || (access == RangeAccess::Write && self.shared.any(range, |_| true))
    }

    /// Adds a lock that [is admitted](Self::admits).
    pub(super) fn add(&mut self, owner: LocalOpen, range: ByteRange, kind: LockKind) {
        let owned = self.owners.entry(owner).or_default();
        let times = owned.locks.entry((kind, range)).or_default();
        *times += 1;
        owned.count += 1;
        self.count += 1;
        if *times == 1 {
            self.ranges(kind).insert(owner, range);
        }
    }

    /// Takes one lock of just this range away, an exclusive one first. Whether there was one.
    pub(super) fn remove(&mut self, owner: LocalOpen, range: ByteRange) -> bool {
        let kinds = [LockKind::Exclusive, LockKind::Shared];
        kinds
            .into_iter()
            .any(|kind| self.remove_kind(owner, range, kind))
    }

    /// Takes one lock of just this range and kind away. Whether there was one.
    pub(super) fn remove_kind(
        &mut self,
        owner: LocalOpen,
        range: ByteRange,
        kind: LockKind,
    ) -> bool {
        let Some(owned) = self.owners.get_mut(&owner) else {
            return false;
        };
        let Some(times) = owned.locks.get_mut(&(kind, range)) else {
            return false;
        };
        *times -= 1;
        let was_last = *times == 0;
        if was_last {
            owned.locks.remove(&(kind, range));
        }
        owned.count -= 1;
        if owned.count == 0 {
            self.owners.remove(&owner);
        }
        self.count -= 1;
        if was_last {
            self.ranges(kind).remove(owner, range);
        }
        true
    }

    /// Takes all locks of an open away. Whether there were any.
    pub(super) fn remove_all(&mut self, owner: LocalOpen) -> bool {
        let Some(owned) = self.owners.remove(&owner) else {
            return false;
        };
        for (kind, range) in owned.locks.keys() {
            self.ranges(*kind).remove(owner, *range);
        }
        self.count -= owned.count;
        true
    }

    /// Whether any lock starts below this offset.
    pub(super) fn is_any_below(&self, offset: u64) -> bool {
        self.exclusive.is_any_below(offset) || self.shared.is_any_below(offset)
    }

    fn ranges(&mut self, kind: LockKind) -> &mut Ranges {
        match kind {
            LockKind::Exclusive => &mut self.exclusive,
            LockKind::Shared => &mut self.shared,
        }
    }
}

impl Ranges {
    fn insert(&mut self, owner: LocalOpen, range: ByteRange) {
        let is_new = self.by_power.insert(Entry::new(owner, range));
        assert!(is_new, "a range is entered once for each owner");
    }

    fn remove(&mut self, owner: LocalOpen, range: ByteRange) {
        let was_there = self.by_power.remove(&Entry::new(owner, range));
        assert!(was_there, "each lock is in the table");
    }

    /// Returns whether the range overlaps a range with an owner that the predicate selects.
    fn any(&self, range: ByteRange, is_meant: impl Fn(LocalOpen) -> bool) -> bool {
        let Some(last) = range.last() else {
            return false;
        };
        let mut next_power = 0;
        while let Some(power) = self.power_from(next_power) {
            // A range of that many binary digits reaches no farther than this.
            let longest = u64::MAX.unbounded_shr(u64::BITS - power);
            let first = range.offset.saturating_sub(longest);
            let from = Entry::first(power, first);
            let mut candidates = (self.by_power.range(from..))
                .take_while(|entry| entry.power == power && entry.range.offset <= last);
            if candidates.any(|entry| entry.range.overlaps(range) && is_meant(entry.owner)) {
                return true;
            }
            next_power = power + 1;
        }
        false
    }

    /// Whether any range starts below this offset.
    fn is_any_below(&self, offset: u64) -> bool {
        let mut next_power = 0;
        while let Some(power) = self.power_from(next_power) {
            let mut entries = self.by_power.range(Entry::first(power, 0)..);
            if entries
                .next()
                .is_some_and(|entry| entry.range.offset < offset)
            {
                return true;
            }
            next_power = power + 1;
        }
        false
    }

    /// The next power that occurs.
    fn power_from(&self, power: u32) -> Option<u32> {
        let mut entries = self.by_power.range(Entry::first(power, 0)..);
        entries.next().map(|entry| entry.power)
    }
}

impl Entry {
    fn new(owner: LocalOpen, range: ByteRange) -> Self {
        Self {
            power: range.power(),
            range,
            owner,
        }
    }

    /// What stands before every entry of this power from this offset on.
    fn first(power: u32, offset: u64) -> Self {
        let owner = LocalOpen {
            share: crate::file::ShareId(0),
            slot: 0,
        };
        let range = ByteRange { offset, length: 0 };
        Self {
            power,
            range,
            owner,
        }
    }
}

#[cfg(test)]
mod tests;
