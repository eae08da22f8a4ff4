//! Locks of opens of the SMB3 POSIX extensions, which are those of fcntl(2), as in Samba 4.25: a
//! lock replaces what its open had locked before, an unlock ends any part of it. Reads and writes
//! of other POSIX opens are free; those of other opens are not.

use alloc::vec::Vec;

use super::{ByteRange, ByteRangeLocks, LockKind, RangeAccess};
use crate::file::LocalOpen;

impl ByteRangeLocks {
    /// Returns whether a lock of a POSIX open is compatible with the locks of other opens. Its own
    /// locks do not matter.
    pub(in super::super) fn admits_posix(
        &self,
        owner: LocalOpen,
        range: ByteRange,
        kind: LockKind,
    ) -> bool {
        let by_others = |other: LocalOpen| other != owner;
        let is_shared = kind == LockKind::Shared || !self.shared.any(range, by_others);
        is_shared && !self.exclusive.any(range, by_others)
    }

    /// Whether a lock forbids a POSIX open to read or write a range: only one that another kind of
    /// open has.
    pub(in super::super) fn forbids_posix(
        &self,
        owner: LocalOpen,
        range: ByteRange,
        access: RangeAccess,
    ) -> bool {
        let counts = |other: LocalOpen| {
            let other_is_posix = self.owners.get(&other).is_some_and(|it| it.is_posix);
            other != owner && !other_is_posix
        };
        let excludes = self.exclusive.any(range, counts);
        excludes || (access == RangeAccess::Write && self.shared.any(range, counts))
    }

    /// Replaces the locks of a POSIX open in a range, which is not empty, by a lock that [is
    /// admitted](Self::admits_posix), or by none. Adds at most two locks.
    pub(in super::super) fn replace(
        &mut self,
        owner: LocalOpen,
        range: ByteRange,
        kind: Option<LockKind>,
    ) {
        assert!(range.length > 0, "POSIX locks have a byte");
        let mut new = range;
        for (held_kind, held) in self.held_near(owner, range) {
            if Some(held_kind) == kind {
                self.take(owner, held, held_kind);
                new = new.union(held);
            } else if held.overlaps(range) {
                self.take(owner, held, held_kind);
                for rest in held.without(range).into_iter().flatten() {
                    self.add(owner, rest, held_kind);
                }
            }
        }
        if let Some(kind) = kind {
            self.add(owner, new, kind);
        }
        if let Some(owned) = self.owners.get_mut(&owner) {
            owned.is_posix = true;
        }
    }

    /// Whether a lock of an open has bytes before and after a range, so that the end of the range
    /// leaves two locks.
    pub(in super::super) fn splits(&self, owner: LocalOpen, range: ByteRange) -> bool {
        let is_outside = |held: &ByteRange| held.offset < range.offset && range.end() < held.end();
        let mut near = self.held_near(owner, range).into_iter();
        near.any(|(_, held)| is_outside(&held))
    }

    fn take(&mut self, owner: LocalOpen, range: ByteRange, kind: LockKind) {
        let was_there = self.remove_kind(owner, range, kind);
        assert!(was_there, "it was just found");
    }

    /// The locks of an open that have a byte in a range or next to it.
    fn held_near(&self, owner: LocalOpen, range: ByteRange) -> Vec<(LockKind, ByteRange)> {
        let locks = self.owners.get(&owner).map(|owned| owned.locks.keys());
        let near = locks.into_iter().flatten().copied();
        near.filter(|(_, held)| held.touches(range)).collect()
    }
}

impl ByteRange {
    /// Whether two ranges that are not empty overlap, or one starts where the other ends.
    fn touches(self, other: Self) -> bool {
        let reaches = |a: Self, b: Self| a.end() >= u128::from(b.offset);
        reaches(self, other) && reaches(other, self)
    }

    /// The smallest range with both.
    fn union(self, other: Self) -> Self {
        let offset = self.offset.min(other.offset);
        Self::between(offset, self.end().max(other.end())).unwrap_or(self)
    }

    /// The parts before and after another range.
    fn without(self, other: Self) -> [Option<Self>; 2] {
        let before = Self::between(self.offset, self.end().min(other.offset.into()));
        let after = u64::try_from(other.end()).ok();
        let after = after.and_then(|end| Self::between(end.max(self.offset), self.end()));
        [before, after]
    }

    /// The range from an offset to an end; `None` if it is empty.
    fn between(offset: u64, end: u128) -> Option<Self> {
        let length = end.checked_sub(offset.into())?;
        let length = u64::try_from(length).ok().filter(|length| *length > 0)?;
        Some(Self { offset, length })
    }

    /// The offset after the last byte.
    fn end(self) -> u128 {
        u128::from(self.offset) + u128::from(self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::ShareId;

    const END: u64 = u64::MAX;

    fn open(slot: u64) -> LocalOpen {
        LocalOpen {
            share: ShareId(0),
            slot,
        }
    }

    fn range(offset: u64, length: u64) -> ByteRange {
        ByteRange::new(offset, length).expect("it ends before 2^64")
    }

    fn held(locks: &ByteRangeLocks, slot: u64) -> Vec<(u64, u64, LockKind)> {
        let held = locks.of(open(slot), usize::MAX).into_iter();
        let mut held: Vec<_> = held
            .map(|(it, kind)| (it.offset, it.length, kind))
            .collect();
        held.sort_unstable();
        held
    }

    #[test]
    fn a_lock_replaces_and_an_unlock_ends_any_part() {
        use LockKind::{Exclusive, Shared};
        let mut locks = ByteRangeLocks::default();
        locks.replace(open(1), range(0, 100), Some(Exclusive));
        locks.replace(open(1), range(40, 20), Some(Shared));
        let split = [(0, 40, Exclusive), (40, 20, Shared), (60, 40, Exclusive)];
        assert_eq!(held(&locks, 1), split);
        locks.replace(open(1), range(50, 30), None);
        let cut = [(0, 40, Exclusive), (40, 10, Shared), (80, 20, Exclusive)];
        assert_eq!(held(&locks, 1), cut);
        locks.replace(open(1), range(30, 60), Some(Exclusive));
        assert_eq!(held(&locks, 1), [(0, 100, Exclusive)]);
        locks.replace(open(1), range(100, END - 100), Some(Exclusive));
        assert_eq!(held(&locks, 1), [(0, END, Exclusive)]);
        locks.replace(open(1), range(0, END), None);
        assert_eq!((held(&locks, 1), locks.len()), (Vec::new(), 0));
    }

    #[test]
    fn only_an_unlock_in_the_middle_splits() {
        let mut locks = ByteRangeLocks::default();
        locks.replace(open(1), range(10, 10), Some(LockKind::Shared));
        assert!(locks.splits(open(1), range(11, 8)));
        assert!(!locks.splits(open(2), range(11, 8)));
        for (offset, length) in [(10, 10), (10, 5), (15, 5), (0, END), (11, 9)] {
            assert!(!locks.splits(open(1), range(offset, length)));
        }
    }

    #[test]
    fn only_other_opens_are_in_the_way_of_a_lock() {
        use LockKind::{Exclusive, Shared};
        let mut locks = ByteRangeLocks::default();
        locks.replace(open(1), range(0, 10), Some(Shared));
        assert!(locks.admits_posix(open(1), range(5, 1), Exclusive));
        assert!(locks.admits_posix(open(2), range(5, 1), Shared));
        assert!(!locks.admits_posix(open(2), range(5, 1), Exclusive));
        assert!(!locks.admits(open(2), range(5, 1), Exclusive));
        assert!(locks.admits_posix(open(2), range(10, 1), Exclusive));
    }

    #[test]
    fn locks_are_advisory_between_posix_opens_alone() {
        use RangeAccess::{Read, Write};
        let mut locks = ByteRangeLocks::default();
        locks.replace(open(1), range(0, 10), Some(LockKind::Exclusive));
        locks.add(open(2), range(20, 10), LockKind::Shared);
        for access in [Read, Write] {
            assert!(!locks.forbids_posix(open(3), range(0, 10), access));
            assert!(locks.forbids(open(2), range(0, 10), access));
        }
        assert!(!locks.forbids_posix(open(3), range(20, 1), Read));
        assert!(locks.forbids_posix(open(3), range(20, 1), Write));
        assert!(!locks.forbids_posix(open(1), range(0, 10), Write));
    }
}
