//! The byte-range locks of programs on an inode: POSIX locks, with owners that the kernel names.
//!
//! The table decides between the programs of this machine. The server excludes other clients: it
//! has one lock for each part of the file, shared if all owners of the part share it. A whole-file
//! lock of flock(2) is a lock of all bytes, as on NFS.

use std::ops::Range;
use std::sync::Mutex;

use smbeam_client::{File, LockKind};

/// A lock of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lock {
    pub(crate) owner: u64,
    pub(crate) pid: u32,
    pub(crate) range: Range<u64>,
    pub(crate) is_exclusive: bool,
}

/// The locks of an inode.
#[derive(Default)]
pub(crate) struct Locks {
    /// The locks of programs, and the server's locks that stand for them.
    pub(crate) table: futures_util::lock::Mutex<LockTable>,
    /// The open that has the locks on the server. Reads and writes of the inode use it, because
    /// the server denies them to other opens.
    pub(crate) holder: Mutex<Option<File>>,
}

/// The locks of programs, and those of the server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LockTable {
    pub(crate) locks: Vec<Lock>,
    /// Locks on the server: disjoint, in order.
    pub(crate) held: Vec<Held>,
}

/// A lock on the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) range: Range<u64>,
    pub(crate) kind: LockKind,
}

impl LockTable {
    /// Returns the first lock of another owner that conflicts.
    pub(crate) fn conflict(&self, wanted: &Lock) -> Option<&Lock> {
        self.locks.iter().find(|lock| {
            lock.owner != wanted.owner
                && overlap(&lock.range, &wanted.range)
                && (lock.is_exclusive || wanted.is_exclusive)
        })
    }

    /// Replaces the locks of an owner in a range: by `wanted`, or by none.
    pub(crate) fn replace(&mut self, owner: u64, range: &Range<u64>, wanted: Option<Lock>) {
        let mut kept = Vec::with_capacity(self.locks.len() + 2);
        for lock in self.locks.drain(..) {
            if lock.owner != owner || !overlap(&lock.range, range) {
                kept.push(lock);
                continue;
            }
            let before = lock.range.start..range.start.max(lock.range.start);
            let after = range.end.min(lock.range.end)..lock.range.end;
            for rest in [before, after] {
                if !rest.is_empty() {
                    kept.push(Lock {
                        range: rest,
                        ..lock.clone()
                    });
                }
            }
        }
        kept.extend(wanted);
        self.locks = kept;
    }

    /// The locks that the server must have: one for each part between two borders of locks.
    pub(crate) fn wanted(&self) -> Vec<Held> {
        let mut borders: Vec<u64> = self
            .locks
            .iter()
            .flat_map(|lock| [lock.range.start, lock.range.end])
            .collect();
        borders.sort_unstable();
        borders.dedup();
        let mut held: Vec<Held> = Vec::new();
        for part in borders.windows(2) {
            let part = part[0]..part[1];
            let mut covering = self
                .locks
                .iter()
                .filter(|it| overlap(&it.range, &part))
                .peekable();
            if covering.peek().is_none() {
                continue;
            }
            let kind = match covering.any(|lock| lock.is_exclusive) {
                true => LockKind::Exclusive,
                false => LockKind::Shared,
            };
            match held.last_mut() {
                Some(last) if last.range.end == part.start && last.kind == kind => {
                    last.range.end = part.end;
                }
                _ => held.push(Held { range: part, kind }),
            }
        }
        held
    }
}

fn overlap(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start < other.end && other.start < one.end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock(owner: u64, range: Range<u64>, is_exclusive: bool) -> Lock {
        Lock {
            owner,
            pid: 1,
            range,
            is_exclusive,
        }
    }

    fn held(list: &[(Range<u64>, bool)]) -> Vec<Held> {
        let one = |(range, is_exclusive): &(Range<u64>, bool)| Held {
            range: range.clone(),
            kind: match is_exclusive {
                true => LockKind::Exclusive,
                false => LockKind::Shared,
            },
        };
        list.iter().map(one).collect()
    }

    #[test]
    fn a_lock_replaces_a_part_of_an_earlier_one_of_its_owner() {
        let mut table = LockTable::default();
        table.replace(1, &(0..100), Some(lock(1, 0..100, true)));
        table.replace(1, &(40..60), Some(lock(1, 40..60, false)));
        assert_eq!(
            table.wanted(),
            held(&[(0..40, true), (40..60, false), (60..100, true)])
        );
        table.replace(1, &(10..90), None);
        assert_eq!(table.wanted(), held(&[(0..10, true), (90..100, true)]));
        table.replace(1, &(0..u64::MAX), None);
        assert_eq!(table, LockTable::default());
    }

    #[test]
    fn owners_conflict_with_others_only() {
        let mut table = LockTable::default();
        table.replace(1, &(0..10), Some(lock(1, 0..10, false)));
        assert_eq!(table.conflict(&lock(1, 0..10, true)), None);
        assert_eq!(table.conflict(&lock(2, 0..10, false)), None);
        assert_eq!(table.conflict(&lock(2, 10..20, true)), None);
        assert_eq!(
            table.conflict(&lock(2, 9..20, true)),
            Some(&lock(1, 0..10, false))
        );
    }

    #[test]
    fn the_server_has_one_lock_for_parts_that_owners_share() {
        let mut table = LockTable::default();
        table.replace(1, &(0..10), Some(lock(1, 0..10, false)));
        table.replace(2, &(5..15), Some(lock(2, 5..15, false)));
        assert_eq!(table.wanted(), held(&[(0..15, false)]));
        table.replace(1, &(0..10), None);
        assert_eq!(table.wanted(), held(&[(5..15, false)]));
    }
}
