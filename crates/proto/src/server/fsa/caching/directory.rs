//! Leases on directories. \[MS-SMB2\] 3.3.4.7, 3.3.5.9.11
//!
//! A client with a lease on a directory caches its list of entries. A change of an entry by an open
//! that does not name this lease as the lease on its parent directory ends the lease. The key alone
//! decides, also for another client (smbtorture smb2.dirlease.seteof).

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use core::sync::atomic::Ordering;
use core::time::Duration;

use wire::Guid;
use wire::upcase::upcased;

use crate::file::{FileKey, LocalEvent, ShareId, StreamId};
use crate::path::SharePath;
use crate::server::fsa::{FileTable, StreamRecord};
use crate::server::notices::Notices;
use crate::time::Instant;

/// The time of a change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChangeTime {
    pub(crate) now: Instant,
    /// When a break that begins now ends at the latest.
    pub(crate) deadline: Instant,
}

/// Number of changes of a directory in one [`WINDOW`] that break leases. After them the directory
/// has no leases until the end of the window: a list that changes so often is not worth a cache,
/// and each break costs several messages.
const BREAKS_MAX: u32 = 8;
/// The period in which the breaks are counted.
const WINDOW: Duration = Duration::from_secs(1);

/// The breaks of leases on a directory in the current [`WINDOW`].
#[derive(Debug)]
pub(in super::super) struct RecentBreaks {
    since: Instant,
    count: u32,
}

/// The name of a directory without regard to case.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) struct DirectoryName {
    share: ShareId,
    path: String,
}

/// The directories with leases, by their names. Two directories of a case-sensitive file system can
/// have one name here.
#[derive(Debug, Default)]
pub(in super::super) struct LeasedDirectories {
    /// The directories of each name, with the number of leases on each.
    by_name: BTreeMap<DirectoryName, BTreeMap<FileKey, usize>>,
}

impl DirectoryName {
    /// The name of a directory.
    pub(in super::super) fn new(share: ShareId, path: &SharePath) -> Self {
        Self {
            share,
            path: upcased(path.as_str()),
        }
    }
}

impl LeasedDirectories {
    /// Adds a lease on a directory.
    pub(in super::super) fn add(&mut self, name: DirectoryName, key: FileKey) {
        let directories = self.by_name.entry(name).or_default();
        *directories.entry(key).or_default() += 1;
    }

    /// Removes a lease on a directory.
    pub(in super::super) fn remove(&mut self, name: &DirectoryName, key: FileKey) {
        let Some(directories) = self.by_name.get_mut(name) else {
            return;
        };
        if let Some(count) = directories.get_mut(&key) {
            *count -= 1;
            if *count == 0 {
                directories.remove(&key);
            }
        }
        if directories.is_empty() {
            self.by_name.remove(name);
        }
    }

    fn named(&self, name: &DirectoryName) -> impl Iterator<Item = FileKey> {
        self.by_name
            .get(name)
            .into_iter()
            .flat_map(|it| it.keys().copied())
    }

    fn of_share(&self, share: ShareId) -> impl Iterator<Item = FileKey> {
        let of_share = self
            .by_name
            .iter()
            .filter(move |(name, _)| name.share == share);
        of_share.flat_map(|(_, directories)| directories.keys().copied())
    }
}

impl FileTable {
    /// Whether any directory has a lease. Takes no lock.
    pub(crate) fn has_directory_leases(&self) -> bool {
        self.directory_leases.load(Ordering::SeqCst) > 0
    }

    /// An entry of a directory has changed: breaks the leases on the directory, but not those with
    /// the key `own`. No request waits for that.
    pub(crate) fn entry_changed(
        &self,
        share: ShareId,
        entry: &SharePath,
        own: Option<Guid>,
        time: ChangeTime,
        notices: &mut Notices,
    ) {
        if entry.is_root() || !self.has_directory_leases() {
            return;
        }
        let name = DirectoryName::new(share, &entry.parent());
        let mut files = self.files.lock();
        for key in files
            .directories
            .named(&name)
            .collect::<alloc::vec::Vec<_>>()
        {
            if let Some(stream) = files.stream_mut(key) {
                stream.break_directory_leases(own, time, notices);
            }
        }
    }

    /// Other processes have changed a share: breaks the leases on the changed directories.
    pub(crate) fn changed_locally(
        &self,
        share: ShareId,
        events: &[LocalEvent],
        time: ChangeTime,
        notices: &mut Notices,
    ) {
        if !self.has_directory_leases() {
            return;
        }
        let mut files = self.files.lock();
        for event in events {
            let keys = match event {
                LocalEvent::Change(change) if !change.path.parent().is_root() => continue,
                LocalEvent::Change(change) => alloc::vec![change.directory],
                LocalEvent::Lost(Some(key)) | LocalEvent::Removed(key) => alloc::vec![*key],
                LocalEvent::Lost(None) => files.directories.of_share(share).collect(),
            };
            for key in keys {
                let key = key.with_stream(StreamId::DATA);
                if let Some(stream) = files.stream_mut(key) {
                    stream.break_directory_leases(None, time, notices);
                }
            }
        }
    }
}

impl StreamRecord {
    fn break_directory_leases(
        &mut self,
        own: Option<Guid>,
        time: ChangeTime,
        notices: &mut Notices,
    ) {
        let before = notices.len();
        self.break_each(time.deadline, notices, |holder| {
            let key = holder.id.lease().map(|lease| lease.key);
            match key.is_some() && key != own {
                true => holder.state.on_change(),
                false => holder.state.unaffected(),
            }
        });
        if notices.len() > before {
            self.count_break(time.now);
        }
    }

    fn count_break(&mut self, now: Instant) {
        match &mut self.recent_breaks {
            Some(recent) if now < recent.since.after(WINDOW) => recent.count += 1,
            recent => {
                let first = RecentBreaks {
                    since: now,
                    count: 1,
                };
                *recent = Some(Box::new(first));
            }
        }
    }

    /// Whether the directory changes too often for leases.
    pub(super) fn changes_often(&self, now: Instant) -> bool {
        let recent = self.recent_breaks.as_ref();
        recent.is_some_and(|it| it.count >= BREAKS_MAX && now < it.since.after(WINDOW))
    }
}
