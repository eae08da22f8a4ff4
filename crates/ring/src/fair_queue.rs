//! A queue that serves groups in turn, and within a group its members in turn.
//!
//! A member with a thousand entries delays the entry of another member by one entry, not by a
//! thousand. A group with a thousand members delays another group by one entry as well.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;

/// The source of closures for the blocking threads: a group and a member of it. The threads serve
/// all groups in turn, and within a group all members in turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobSource {
    /// Number of the group, for example of a user. The threads serve the groups in turn.
    pub group: u64,
    /// Number of the member within its group, for example of a connection. The threads serve the
    /// members of a group in turn.
    pub member: u64,
}

/// Entries of many sources. Entries of one source leave in the order in which they came.
#[derive(Debug)]
pub(crate) struct FairQueue<T> {
    groups: BTreeMap<u64, Group<T>>,
    /// The group that was served last.
    last: u64,
    len: usize,
}

/// The entries of one group. It has at least one entry.
#[derive(Debug)]
struct Group<T> {
    members: BTreeMap<u64, VecDeque<T>>,
    /// The member that was served last.
    last: u64,
}

impl<T> Default for FairQueue<T> {
    fn default() -> Self {
        Self {
            groups: BTreeMap::new(),
            last: 0,
            len: 0,
        }
    }
}

impl<T> Default for Group<T> {
    fn default() -> Self {
        Self {
            members: BTreeMap::new(),
            last: 0,
        }
    }
}

impl<T> FairQueue<T> {
    /// Number of entries.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Adds an entry behind the other entries of its source.
    pub(crate) fn push(&mut self, source: JobSource, entry: T) {
        let group = self.groups.entry(source.group).or_default();
        let member = group.members.entry(source.member).or_default();
        member.push_back(entry);
        self.len += 1;
    }

    /// Removes the next entry: of the next group, of its next member.
    pub(crate) fn pop(&mut self) -> Option<T> {
        let key = next_after(&self.groups, self.last)?;
        self.last = key;
        let group = self.groups.get_mut(&key).expect("the key is in the map");
        let entry = group.pop();
        if group.members.is_empty() {
            self.groups.remove(&key);
        }
        self.len -= 1;
        Some(entry)
    }
}

impl<T> Group<T> {
    fn pop(&mut self) -> T {
        let key = next_after(&self.members, self.last).expect("a group has an entry");
        self.last = key;
        let member = self.members.get_mut(&key).expect("the key is in the map");
        let entry = member.pop_front().expect("a member has an entry");
        if member.is_empty() {
            self.members.remove(&key);
        }
        entry
    }
}

/// The next key of a map in a circle.
fn next_after<V>(map: &BTreeMap<u64, V>, last: u64) -> Option<u64> {
    let after = map.range((Bound::Excluded(last), Bound::Unbounded)).next();
    after.or_else(|| map.first_key_value()).map(|(key, _)| *key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(group: u64, member: u64) -> JobSource {
        JobSource { group, member }
    }

    #[test]
    fn a_source_with_many_entries_delays_another_one_by_one_entry() {
        let mut queue = FairQueue::default();
        for number in 0..1000 {
            queue.push(source(1, 1), number);
        }
        assert_eq!(queue.pop(), Some(0));
        queue.push(source(1, 2), 5000);
        queue.push(source(2, 3), 6000);
        let next: Vec<_> = (0..4).filter_map(|_| queue.pop()).collect();
        assert_eq!(next, [6000, 5000, 1, 2]);
        assert_eq!(queue.len(), 997);
    }

    #[test]
    fn a_group_with_many_members_delays_another_group_by_one_entry() {
        let mut queue = FairQueue::default();
        for member in 0..100 {
            queue.push(source(1, member), "many");
        }
        queue.push(source(2, 0), "few");
        let first: Vec<_> = (0..2).filter_map(|_| queue.pop()).collect();
        assert!(first.contains(&"few"));
    }

    #[test]
    fn entries_of_a_source_keep_their_order_and_all_of_them_leave() {
        let mut queue = FairQueue::default();
        for number in 0..30 {
            queue.push(source(number % 2, number % 3), number);
        }
        let mut last = BTreeMap::new();
        while let Some(number) = queue.pop() {
            let before = last.insert((number % 2, number % 3), number);
            assert!(before.is_none_or(|before| before < number));
        }
        assert_eq!((last.len(), queue.len()), (6, 0));
        assert!(queue.pop().is_none() && queue.groups.is_empty());
    }
}
