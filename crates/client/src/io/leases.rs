//! The leases of a session: one for each path with an open. \[MS-SMB2\] 3.2.4.3.8, 3.2.5.19.2
//!
//! All opens of a path share a lease key, so that they do not break each other. A break first runs
//! the callbacks of the program, then waits for the WRITEs in flight, and then is acknowledged.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, Weak};

use proto::client::request::Created;
use proto::client::{self as core, LeaseRecord};
use tracing::warn;
use wire::Guid;
use wire::create_context::LeaseState as Rights;

use crate::io::slot::{Filler, Pickup, lock, slot};
use crate::io::tree::TreeState;

/// Smallest length of the table at which dead entries are removed.
const TABLE_MIN: usize = 64;

/// A break of a lease: the server withdraws caching rights of a file, because another client opens
/// or changes it. \[MS-SMB2\] 2.2.23.2
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaseBreak {
    /// The rights before the break.
    pub from: Rights,
    /// The rights that remain.
    pub to: Rights,
    /// Number of state changes of the lease modulo 65,536, including this one; 0 with dialect 2.1.
    pub epoch: u16,
}

/// Code of the program that runs when a lease breaks.
pub(crate) type Callback = Arc<dyn Fn(LeaseBreak) + Send + Sync>;

/// Runs callbacks of the program. One that panics does not prevent the acknowledgment.
pub(crate) fn run_all(callbacks: &[Callback], event: LeaseBreak) {
    for callback in callbacks {
        let run = std::panic::AssertUnwindSafe(|| callback(event));
        if std::panic::catch_unwind(run).is_err() {
            warn!("a callback for the break of a lease panicked");
        }
    }
}

/// A lease.
pub(crate) struct LeaseState {
    /// LeaseKey.
    pub(crate) key: Guid,
    pub(crate) tree: Arc<TreeState>,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    record: LeaseRecord,
    callbacks: Vec<Callback>,
    /// The WRITEs in flight, by the order of their starts.
    writes: BTreeSet<u64>,
    next_write: u64,
    /// Breaks that wait for the WRITEs before a number.
    waiting: Vec<(u64, Filler<()>)>,
}

impl LeaseState {
    pub(crate) fn new(key: Guid, tree: &Arc<TreeState>) -> Arc<Self> {
        Arc::new(Self {
            key,
            tree: Arc::clone(tree),
            inner: Mutex::default(),
        })
    }

    /// Takes the lease in the response to a CREATE.
    pub(crate) fn grant(&self, created: &Created) {
        if let Some(state) = created.lease_state {
            let (epoch, is_breaking) = (created.lease_epoch, created.is_lease_breaking);
            let record = &mut lock(&self.inner).record;
            record.grant(Rights(state), epoch, is_breaking);
        }
    }

    /// State and epoch.
    pub(crate) fn now(&self) -> LeaseRecord {
        lock(&self.inner).record
    }

    /// The server has closed the last open with the lease, so it holds the lease no more. Returns
    /// the callbacks that must learn it.
    pub(crate) fn end(&self) -> Option<(LeaseBreak, Vec<Callback>)> {
        let mut inner = lock(&self.inner);
        let (from, epoch) = (inner.record.state, inner.record.epoch);
        let event = LeaseBreak {
            from,
            to: Rights::NONE,
            epoch,
        };
        let has_changed = inner.record.break_to(Rights::NONE, epoch);
        has_changed.then(|| (event, inner.callbacks.clone()))
    }

    /// Adds a callback for breaks.
    pub(crate) fn on_break(&self, callback: Callback) {
        lock(&self.inner).callbacks.push(callback);
    }

    /// Takes note of a WRITE, which lasts until the guard is dropped.
    pub(crate) fn begin_write(self: &Arc<Self>) -> WriteGuard {
        let mut inner = lock(&self.inner);
        let number = inner.next_write;
        inner.next_write += 1;
        inner.writes.insert(number);
        WriteGuard {
            lease: Arc::clone(self),
            number,
        }
    }

    /// Waits for the WRITEs in flight; `None` if there are none.
    pub(crate) fn writes_done(&self) -> Option<Pickup<()>> {
        let mut inner = lock(&self.inner);
        if inner.writes.is_empty() {
            return None;
        }
        let (filler, pickup) = slot();
        let barrier = inner.next_write;
        inner.waiting.push((barrier, filler));
        Some(pickup)
    }

    fn end_write(&self, number: u64) {
        let mut inner = lock(&self.inner);
        inner.writes.remove(&number);
        let first = inner.writes.first().copied().unwrap_or(u64::MAX);
        let (done, waiting) = std::mem::take(&mut inner.waiting)
            .into_iter()
            .partition(|(barrier, _)| *barrier <= first);
        inner.waiting = waiting;
        drop(inner);
        for (_, filler) in done {
            let _ = filler.fill(());
        }
    }
}

/// A WRITE in flight on a file with a lease.
pub(crate) struct WriteGuard {
    lease: Arc<LeaseState>,
    number: u64,
}

impl Drop for WriteGuard {
    fn drop(&mut self) {
        self.lease.end_write(self.number);
    }
}

/// The consequences of a break.
pub(crate) struct Breaking {
    /// The lease; `None` if the program has closed its files.
    pub(crate) lease: Option<Arc<LeaseState>>,
    pub(crate) event: LeaseBreak,
    pub(crate) callbacks: Vec<Callback>,
}

/// The leases of a session.
#[derive(Default)]
pub(crate) struct LeaseTable {
    by_path: HashMap<String, Weak<LeaseState>>,
    by_key: HashMap<Guid, Weak<LeaseState>>,
}

impl LeaseTable {
    /// The lease of a path, in the form of the protocol. If the path has no open, or the caller
    /// needs a lease that no other open has, makes one with the key `fresh`.
    pub(crate) fn lease_for(
        &mut self,
        tree: &Arc<TreeState>,
        path: &str,
        fresh: Guid,
        is_own: bool,
    ) -> Arc<LeaseState> {
        let name = name(tree, path);
        let known = self.by_path.get(&name).and_then(Weak::upgrade);
        if let Some(lease) = known.filter(|_| !is_own) {
            return lease;
        }
        self.prune();
        let lease = LeaseState::new(fresh, tree);
        self.by_path.insert(name, Arc::downgrade(&lease));
        self.by_key.insert(fresh, Arc::downgrade(&lease));
        lease
    }

    /// The lease of a path, if one with any rights is granted.
    pub(crate) fn known_lease(&self, tree: &TreeState, path: &str) -> Option<Arc<LeaseState>> {
        let lease = self.by_path.get(&name(tree, path))?.upgrade()?;
        let record = lease.now();
        (record.is_granted() && !record.state.is_empty()).then_some(lease)
    }

    /// The key of the lease on the directory of a path, if one is granted.
    pub(crate) fn parent_lease(&self, tree: &TreeState, path: &str) -> Option<Guid> {
        // Names of the SMB3 POSIX extensions have `/` between them.
        let parent = path.rsplit_once(['\\', '/']);
        let parent = parent.map_or("", |(parent, _)| parent);
        self.known_lease(tree, parent).map(|lease| lease.key)
    }

    /// A file with the lease `lease` has another path. Later opens of the old path are of another
    /// file.
    pub(crate) fn rename(&mut self, lease: &Arc<LeaseState>, from: &str, to: &str) {
        let old = name(&lease.tree, from);
        let entry = self.by_path.get(&old).and_then(Weak::upgrade);
        if entry.is_some_and(|entry| Arc::ptr_eq(&entry, lease)) {
            self.by_path.remove(&old);
            let new = name(&lease.tree, to);
            self.by_path.insert(new, Arc::downgrade(lease));
        }
    }

    /// Applies a break of the server.
    pub(crate) fn break_lease(&self, notification: &core::LeaseBreak) -> Breaking {
        let to = Rights(notification.state);
        let lease = self.by_key.get(&notification.key).and_then(Weak::upgrade);
        let mut event = LeaseBreak {
            from: to,
            to,
            epoch: notification.epoch,
        };
        let mut callbacks = Vec::new();
        if let Some(lease) = &lease {
            let mut inner = lock(&lease.inner);
            event.from = inner.record.state;
            if inner.record.break_to(to, notification.epoch) {
                callbacks.clone_from(&inner.callbacks);
            }
            event.to = inner.record.state;
        }
        Breaking {
            lease,
            event,
            callbacks,
        }
    }

    fn prune(&mut self) {
        if self.by_key.len() >= TABLE_MIN && self.by_key.len() == self.by_key.capacity() {
            self.by_key.retain(|_, lease| lease.strong_count() > 0);
            self.by_path.retain(|_, lease| lease.strong_count() > 0);
        }
    }
}

/// The name of a file within the session.
fn name(tree: &TreeState, path: &str) -> String {
    format!("{}\\{path}", tree.name)
}

impl fmt::Debug for LeaseState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LeaseState({:?}, {:?})", self.key, self.now())
    }
}

#[cfg(test)]
mod tests {
    use wire::TreeId;

    use super::*;
    use crate::Wait;

    const KEY: Guid = Guid([1; 16]);
    const OTHER: Guid = Guid([2; 16]);

    fn tree() -> Arc<TreeState> {
        TreeState::new("data", false, TreeId(1))
    }

    #[test]
    fn opens_of_a_path_share_a_lease_while_one_lives() {
        let (mut table, tree) = (LeaseTable::default(), tree());
        let first = table.lease_for(&tree, "a", KEY, false);
        let second = table.lease_for(&tree, "a", OTHER, false);
        assert!(Arc::ptr_eq(&first, &second));
        assert_eq!(table.lease_for(&tree, "b", OTHER, false).key, OTHER);
        drop((first, second));
        assert_eq!(table.lease_for(&tree, "a", OTHER, false).key, OTHER);
    }

    #[test]
    fn only_a_granted_lease_is_known() {
        let (mut table, tree) = (LeaseTable::default(), tree());
        let lease = table.lease_for(&tree, "a", KEY, false);
        assert!(table.known_lease(&tree, "a").is_none());
        lock(&lease.inner).record.grant(Rights(7), Some(1), false);
        let known = table.known_lease(&tree, "a");
        assert!(known.is_some_and(|known| Arc::ptr_eq(&known, &lease)));
        assert!(table.known_lease(&tree, "b").is_none());
        drop(lease);
        assert!(table.known_lease(&tree, "a").is_none());
    }

    #[test]
    fn a_new_file_at_the_path_of_a_renamed_one_has_another_lease() {
        let (mut table, tree) = (LeaseTable::default(), tree());
        let moved = table.lease_for(&tree, "a", KEY, false);
        table.rename(&moved, "a", "b");
        let new = table.lease_for(&tree, "a", OTHER, false);
        assert_eq!(new.key, OTHER);
        assert_eq!(table.lease_for(&tree, "b", Guid([3; 16]), false).key, KEY);
        // The server says that the path has become another file.
        let replaced = table.lease_for(&tree, "b", Guid([3; 16]), true);
        assert_eq!(replaced.key, Guid([3; 16]));
    }

    #[test]
    fn a_break_reports_each_change_once() {
        let (mut table, tree) = (LeaseTable::default(), tree());
        let lease = table.lease_for(&tree, "a", KEY, false);
        lease.on_break(Arc::new(|_| ()));
        lock(&lease.inner).record.grant(Rights(7), Some(1), false);
        let notification = |key, state, epoch| core::LeaseBreak {
            key,
            state,
            epoch,
            must_be_acknowledged: true,
        };
        let breaking = table.break_lease(&notification(KEY, 3, 2));
        assert_eq!(
            (breaking.event.from, breaking.event.to),
            (Rights(7), Rights(3))
        );
        assert_eq!(breaking.callbacks.len(), 1);
        assert_eq!(lease.now().state, Rights(3));
        let again = table.break_lease(&notification(KEY, 3, 2));
        assert!(again.callbacks.is_empty() && again.lease.is_some());
        assert!(
            table
                .break_lease(&notification(OTHER, 3, 2))
                .lease
                .is_none()
        );
    }

    #[test]
    fn a_file_names_the_lease_on_its_directory() {
        let (mut table, tree) = (LeaseTable::default(), tree());
        let directory = table.lease_for(&tree, "a\\b", KEY, false);
        assert_eq!(table.parent_lease(&tree, "a\\b\\c"), None);
        lock(&directory.inner)
            .record
            .grant(Rights(3), Some(1), false);
        assert_eq!(table.parent_lease(&tree, "a\\b\\c"), Some(KEY));
        assert_eq!(table.parent_lease(&tree, "a\\b"), None);
        let exact = table.lease_for(&tree, "x/y", Guid([7; 16]), false);
        lock(&exact.inner).record.grant(Rights(3), Some(1), false);
        assert_eq!(table.parent_lease(&tree, "x/y/z"), Some(Guid([7; 16])));
        let root = table.lease_for(&tree, "", OTHER, false);
        lock(&root.inner).record.grant(Rights(3), Some(1), false);
        assert_eq!(table.parent_lease(&tree, "a"), Some(OTHER));
        let (event, _) = directory.end().expect("it was granted");
        assert_eq!((event.from, event.to), (Rights(3), Rights::NONE));
        assert!(directory.end().is_none());
        assert_eq!(table.parent_lease(&tree, "a\\b\\c"), None);
    }

    #[test]
    fn a_break_waits_for_the_writes_before_it() {
        let lease = LeaseState::new(KEY, &tree());
        assert!(lease.writes_done().is_none());
        let (first, second) = (lease.begin_write(), lease.begin_write());
        let done = lease.writes_done().expect("two are in flight");
        let third = lease.begin_write();
        drop(second);
        assert_eq!(lock(&lease.inner).waiting.len(), 1);
        drop(first);
        assert_eq!(done.wait(), Ok(()), "the third one is later");
        drop(third);
        assert!(lease.writes_done().is_none());
    }

    #[test]
    fn dead_leases_leave_the_table() {
        let (mut table, tree) = (LeaseTable::default(), tree());
        for count in 0_u32..4096 {
            let mut key = KEY;
            key.0[..4].copy_from_slice(&count.to_le_bytes());
            drop(table.lease_for(&tree, &count.to_string(), key, false));
        }
        assert!(table.by_key.len() < 1024 && table.by_path.len() < 1024);
    }
}
