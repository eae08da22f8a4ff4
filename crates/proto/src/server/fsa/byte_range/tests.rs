use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::file::ShareId;

const ONE: u64 = 1;
const OTHER: u64 = 2;

fn open(slot: u64) -> LocalOpen {
    LocalOpen {
        share: ShareId(0),
        slot,
    }
}

fn range(offset: u64, length: u64) -> ByteRange {
    ByteRange::new(offset, length).expect("it ends before 2^64")
}

/// Locks if it can be.
fn lock(locks: &mut ByteRangeLocks, owner: u64, place: ByteRange, kind: LockKind) -> bool {
    let admits = locks.admits(open(owner), place, kind);
    if admits {
        locks.add(open(owner), place, kind);
    }
    admits
}

#[test]
fn a_range_ends_with_the_last_offset() {
    assert!(ByteRange::new(u64::MAX, 0).is_some());
    assert!(ByteRange::new(u64::MAX, 1).is_some());
    assert!(ByteRange::new(u64::MAX, 2).is_none());
    assert!(ByteRange::new(0, u64::MAX).is_some());
    assert!(ByteRange::new(1, u64::MAX).is_some());
    assert!(ByteRange::new(2, u64::MAX).is_none());
}

/// smbtorture smb2.lock.zerobytelength
#[test]
fn an_empty_range_is_overlapped_by_what_holds_both_its_sides() {
    let empty = range(10, 0);
    for (offset, length, overlaps) in [
        (10, 0, false),
        (9, 1, false),
        (10, 1, false),
        (11, 1, false),
        (9, 2, true),
        (10, 2, false),
        (9, 3, true),
        (0, u64::MAX, true),
    ] {
        let other = range(offset, length);
        assert_eq!(empty.overlaps(other), overlaps, "{other:?}");
        assert_eq!(other.overlaps(empty), overlaps, "{other:?}");
    }
    assert!(!range(0, 0).overlaps(range(0, u64::MAX)));
}

/// smbtorture smb2.lock.stacking
#[test]
fn shared_goes_on_top_of_ones_own_exclusive_and_nothing_else_does() {
    let mut locks = ByteRangeLocks::default();
    let place = range(0, 10);
    assert!(lock(&mut locks, ONE, place, LockKind::Exclusive));
    assert!(!lock(&mut locks, ONE, place, LockKind::Exclusive));
    assert!(lock(&mut locks, ONE, place, LockKind::Shared));
    assert!(lock(&mut locks, ONE, place, LockKind::Shared));
    assert!(!lock(&mut locks, OTHER, place, LockKind::Shared));
    assert_eq!((locks.len(), locks.len_of(open(ONE))), (3, 3));
    // The exclusive one goes first.
    assert!(locks.remove(open(ONE), place));
    assert!(lock(&mut locks, OTHER, place, LockKind::Shared));
    assert!(!lock(&mut locks, ONE, place, LockKind::Exclusive));
    assert!(locks.remove(open(ONE), place));
    assert!(locks.remove(open(ONE), place));
    assert!(!locks.remove(open(ONE), place));
    assert!(!locks.remove(open(OTHER), range(0, 9)));
    assert!(locks.remove_all(open(OTHER)));
    assert!(!locks.remove_all(open(OTHER)));
    assert_eq!(locks.len(), 0);
    assert!(lock(&mut locks, ONE, place, LockKind::Exclusive));
}

#[test]
fn a_shared_lock_keeps_its_owner_from_writing_too() {
    let mut locks = ByteRangeLocks::default();
    let place = range(100, 100);
    assert!(lock(&mut locks, ONE, place, LockKind::Shared));
    for slot in [ONE, OTHER] {
        assert!(!locks.forbids(open(slot), place, RangeAccess::Read));
        assert!(locks.forbids(open(slot), range(199, 1), RangeAccess::Write));
        assert!(!locks.forbids(open(slot), range(200, 1), RangeAccess::Write));
    }
    locks.remove(open(ONE), place);
    assert!(lock(&mut locks, ONE, place, LockKind::Exclusive));
    for access in [RangeAccess::Read, RangeAccess::Write] {
        assert!(!locks.forbids(open(ONE), place, access));
        assert!(locks.forbids(open(OTHER), place, access));
    }
}

/// The locks in a list, and every question answered by looking at each.
#[derive(Default)]
struct Naive(Vec<(u64, ByteRange, LockKind)>);

impl Naive {
    fn overlapping(&self, place: ByteRange) -> impl Iterator<Item = (u64, LockKind)> {
        let overlaps = move |other: &ByteRange| {
            let end = |range: ByteRange| u128::from(range.offset) + u128::from(range.length);
            let (one, two) = ((place.offset, end(place)), (other.offset, end(*other)));
            match (place.length, other.length) {
                (0, 0) => false,
                (0, _) => two.0 < one.0 && one.1 < two.1,
                (_, 0) => one.0 < two.0 && two.1 < one.1,
                _ => u128::from(one.0) < two.1 && u128::from(two.0) < one.1,
            }
        };
        let found = self.0.iter().filter(move |(_, other, _)| overlaps(other));
        found.map(|(owner, _, kind)| (*owner, *kind))
    }

    fn admits(&self, owner: u64, place: ByteRange, kind: LockKind) -> bool {
        self.overlapping(place).all(|(other, its)| {
            let both_share = kind == LockKind::Shared && its == LockKind::Shared;
            both_share || (kind == LockKind::Shared && other == owner)
        })
    }

    fn forbids(&self, owner: u64, place: ByteRange, access: RangeAccess) -> bool {
        self.overlapping(place).any(|(other, its)| match its {
            LockKind::Exclusive => other != owner,
            LockKind::Shared => access == RangeAccess::Write,
        })
    }

    fn remove(&mut self, owner: u64, place: ByteRange) -> bool {
        for kind in [LockKind::Exclusive, LockKind::Shared] {
            let found = self.0.iter().position(|lock| *lock == (owner, place, kind));
            if let Some(index) = found {
                self.0.remove(index);
                return true;
            }
        }
        false
    }
}

#[derive(Clone, Copy, Debug)]
enum Act {
    Lock(u64, ByteRange, LockKind),
    Unlock(u64, ByteRange),
    /// The lock with this index, counted round.
    UnlockOne(usize),
    Close(u64),
    Ask(u64, ByteRange, RangeAccess),
}

fn any_range() -> impl Strategy<Value = ByteRange> {
    let near = (0..24_u64, 0..8_u64);
    let wide = (any::<u64>(), 0..=64_u32).prop_map(|(offset, bits)| {
        let length = u64::MAX.unbounded_shr(64 - bits);
        (offset, length)
    });
    let far = (0..24_u64, 0..8_u64).prop_map(|(before, length)| (u64::MAX - before, length));
    let places = prop_oneof![6 => near, 1 => wide, 1 => far];
    places.prop_filter_map("beyond the last offset", |(offset, length)| {
        ByteRange::new(offset, length)
    })
}

fn any_act() -> impl Strategy<Value = Act> {
    let owner = 0..3_u64;
    let kind = prop_oneof![Just(LockKind::Shared), Just(LockKind::Exclusive)];
    let access = prop_oneof![Just(RangeAccess::Read), Just(RangeAccess::Write)];
    prop_oneof![
        6 => (owner.clone(), any_range(), kind).prop_map(|(o, r, k)| Act::Lock(o, r, k)),
        1 => (owner.clone(), any_range()).prop_map(|(o, r)| Act::Unlock(o, r)),
        2 => any::<usize>().prop_map(Act::UnlockOne),
        1 => owner.clone().prop_map(Act::Close),
        4 => (owner, any_range(), access).prop_map(|(o, r, a)| Act::Ask(o, r, a)),
    ]
}

fn take(locks: &mut ByteRangeLocks, naive: &mut Naive, act: Act) {
    match act {
        Act::Lock(owner, place, kind) => {
            let admits = naive.admits(owner, place, kind);
            assert_eq!(lock(locks, owner, place, kind), admits);
            if admits {
                naive.0.push((owner, place, kind));
            }
        }
        Act::Unlock(owner, place) => {
            assert_eq!(locks.remove(open(owner), place), naive.remove(owner, place));
        }
        Act::UnlockOne(index) if !naive.0.is_empty() => {
            let (owner, place, _) = naive.0[index % naive.0.len()];
            assert!(naive.remove(owner, place));
            assert!(locks.remove(open(owner), place));
        }
        Act::UnlockOne(_) => {}
        Act::Close(owner) => {
            let before = naive.0.len();
            naive.0.retain(|(other, _, _)| *other != owner);
            assert_eq!(locks.remove_all(open(owner)), naive.0.len() < before);
        }
        Act::Ask(owner, place, access) => {
            assert_eq!(
                locks.forbids(open(owner), place, access),
                naive.forbids(owner, place, access)
            );
        }
    }
    assert_eq!(locks.len(), naive.0.len());
}

proptest! {
    #[test]
    fn a_list_of_locks_says_the_same(acts in prop::collection::vec(any_act(), 0..120)) {
        let (mut locks, mut naive) = (ByteRangeLocks::default(), Naive::default());
        for act in acts {
            take(&mut locks, &mut naive, act);
        }
        for owner in 0..3 {
            locks.remove_all(open(owner));
        }
        prop_assert!(locks.owners.is_empty());
        prop_assert!(locks.shared.by_power.is_empty() && locks.exclusive.by_power.is_empty());
    }
}
