//! Watches of directories, and the changes that they report. \[MS-FSA\] 2.1.1.7, 2.1.4.1, 2.1.5.11
//!
//! A watch begins with the first CHANGE_NOTIFY of an open and ends with the open. It buffers
//! changes between two requests, up to the buffer size of the first request and the limit of the
//! server. After an overflow the client must list the directory.
//!
//! The handlers report changes through this server before they answer. They know more than the file
//! system reports, such as a change of attributes or of the owner. The file system reports changes
//! by other processes as [`LocalEvent`]s, and leaves out changes by the server.

use alloc::collections::btree_map::Entry;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};

use spin::Mutex;
use wire::change_notify::CompletionFilter;
use wire::fscc::{FileAction, FileNotifyInformation, NotifyWriter};
use wire::text::utf16;
use wire::{Status, Utf16};

use crate::file::{FileKey, LocalChange, LocalEvent, LocalOpen, ShareId};
use crate::id::{ConnectionId, OpId};
use crate::notice::Notice;
use crate::path::SharePath;
use crate::server::fsa::FileTable;
use crate::server::notices::Notices;
use crate::server::quota::QuotaGuard;

/// The directories that are watched.
#[derive(Debug, Default)]
pub(crate) struct WatchTable {
    watches: Mutex<BTreeMap<LocalOpen, Watch>>,
    /// Number of watches. A check for none takes no lock.
    count: AtomicUsize,
}

/// The scope of a watch. The first request of an open decides for all. \[MS-FSA\] 2.1.5.11
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scope {
    pub(crate) directory: FileKey,
    pub(crate) filter: CompletionFilter,
    pub(crate) is_tree: bool,
    /// Bytes that are kept at most.
    pub(crate) max_len: usize,
}

#[derive(Debug)]
struct Watch {
    /// That it counts.
    _quota: QuotaGuard,
    scope: Scope,
    changes: NotifyWriter,
    /// Whether more happened than is kept.
    is_overrun: bool,
    /// Whether there are changes that no answer has reported.
    is_due: bool,
    /// Whether another process removed the directory.
    is_gone: bool,
    /// Requests that wait, the oldest first.
    waiting: VecDeque<(ConnectionId, OpId)>,
}

/// A change of a name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event<'a> {
    pub(crate) action: FileAction,
    /// The filters by which it is seen: one is enough.
    pub(crate) filter: CompletionFilter,
    pub(crate) path: &'a SharePath,
}

/// The result of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// It waits.
    Nothing,
    /// A list of FILE_NOTIFY_INFORMATION.
    Changes(Vec<u8>),
    /// More than the list holds.
    TooMuch,
    /// The open is closed.
    Closed,
    /// The directory was deleted.
    Gone,
}

impl WatchTable {
    /// Begins to watch, unless this open does already. Whether it began; one that does counts.
    pub(crate) fn watch(
        &self,
        open: LocalOpen,
        scope: Scope,
        place: impl FnOnce() -> Result<QuotaGuard, Status>,
    ) -> Result<bool, Status> {
        let mut watches = self.watches.lock();
        let Entry::Vacant(vacant) = watches.entry(open) else {
            return Ok(false);
        };
        vacant.insert(Watch::new(scope, place()?));
        self.count.store(watches.len(), Ordering::Relaxed);
        Ok(true)
    }

    /// Takes the buffered changes. Without any, the request waits under this operation.
    pub(crate) fn take(
        &self,
        open: LocalOpen,
        max_len: usize,
        waiter: (ConnectionId, OpId),
    ) -> News {
        let mut watches = self.watches.lock();
        let Some(watch) = watches.get_mut(&open) else {
            return News::Closed;
        };
        if watch.is_due {
            return watch.take(max_len);
        }
        if watch.is_gone {
            return News::Gone;
        }
        watch.waiting.push_back(waiter);
        News::Nothing
    }

    /// A request waits no more.
    pub(crate) fn forget(&self, open: LocalOpen, waiter: (ConnectionId, OpId)) {
        if let Some(watch) = self.watches.lock().get_mut(&open) {
            watch.waiting.retain(|other| *other != waiter);
        }
    }

    /// Ends the watch of a closed open. Returns the notices that wake its requests.
    pub(crate) fn end(&self, open: LocalOpen) -> Notices {
        if self.is_empty() {
            return Notices::new();
        }
        let mut watches = self.watches.lock();
        let ended = watches.remove(&open);
        self.count.store(watches.len(), Ordering::Relaxed);
        ended.into_iter().flat_map(Watch::wake).collect()
    }

    /// A directory will be deleted. Returns the notices that wake its requests.
    pub(crate) fn wake(&self, directory: FileKey) -> Notices {
        let mut notices = Notices::new();
        for watch in self.watches.lock().values_mut() {
            if watch.scope.directory == directory {
                notices.extend(watch.waiting.drain(..).map(changed));
            }
        }
        notices
    }

    /// Whether there are no watches.
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    /// Records changes in a share through this open. Returns the notices that wake requests, one
    /// for each watch with changes.
    pub(crate) fn report(&self, files: &FileTable, by: LocalOpen, events: &[Event<'_>]) -> Notices {
        let mut notices = Notices::new();
        for (open, watch) in self.watches.lock().iter_mut() {
            if open.share != by.share {
                continue;
            }
            // The directory may have been renamed since.
            let Some(directory) = files.path(watch.scope.directory, *open) else {
                continue;
            };
            let seen = events
                .iter()
                .filter(|event| watch.scope.sees(&directory, event));
            let seen: Vec<_> = seen.copied().collect();
            seen.iter().for_each(|event| watch.note(&directory, event));
            if !seen.is_empty() {
                notices.extend(watch.waiting.pop_front().map(changed));
            }
        }
        notices
    }

    /// Records changes in a share by other processes. Returns the notices that wake requests, one
    /// for each watch with changes.
    pub(crate) fn report_local(&self, share: ShareId, events: &[LocalEvent]) -> Notices {
        let mut notices = Notices::new();
        for (_, watch) in (self.watches.lock().iter_mut()).filter(|(open, _)| open.share == share) {
            let mut has_news = false;
            for event in events {
                has_news |= watch.note_local(event);
            }
            if has_news {
                // One has all the news; that there will be no more concerns each.
                let count = if watch.is_gone {
                    watch.waiting.len()
                } else {
                    1
                };
                let count = count.min(watch.waiting.len());
                notices.extend(watch.waiting.drain(..count).map(changed));
            }
        }
        notices
    }
}

fn changed((connection, op): (ConnectionId, OpId)) -> (ConnectionId, Notice) {
    (connection, Notice::DirectoryChanged(op))
}

impl Scope {
    fn sees(&self, directory: &SharePath, event: &Event<'_>) -> bool {
        let is_here = match self.is_tree {
            true => event.path.is_below(directory),
            false => !event.path.is_root() && event.path.parent() == *directory,
        };
        is_here && self.filter.intersects(event.filter)
    }

    fn sees_local(&self, change: &LocalChange) -> bool {
        let is_here = self.is_tree || change.path.parent().is_root();
        is_here && change.directory == self.directory && self.filter.intersects(change.filter)
    }
}

impl Watch {
    fn new(scope: Scope, place: QuotaGuard) -> Self {
        Self {
            _quota: place,
            scope,
            changes: NotifyWriter::new(scope.max_len),
            is_overrun: false,
            is_due: false,
            is_gone: false,
            waiting: VecDeque::new(),
        }
    }

    fn note(&mut self, directory: &SharePath, event: &Event<'_>) {
        let path = event.path.to_wire();
        let skipped = match directory.is_root() {
            true => 0,
            false => directory.to_wire().len() + 1,
        };
        self.keep(event.action, &path[skipped..]);
    }

    /// Records a local change. Returns whether it matches the watch.
    fn note_local(&mut self, event: &LocalEvent) -> bool {
        match event {
            LocalEvent::Change(change) if self.scope.sees_local(change) => {
                self.keep(change.action, &change.path.to_wire());
            }
            LocalEvent::Change(_) => return false,
            LocalEvent::Lost(below) => {
                if below.is_some_and(|directory| directory != self.scope.directory) {
                    return false;
                }
                self.is_due = true;
                self.is_overrun = true;
            }
            LocalEvent::Removed(directory) => {
                if *directory != self.scope.directory {
                    return false;
                }
                self.is_gone = true;
            }
        }
        true
    }

    fn keep(&mut self, action: FileAction, name: &str) {
        self.is_due = true;
        let name = utf16(name);
        let change = FileNotifyInformation {
            action,
            name: Utf16(&name),
        };
        self.is_overrun = self.is_overrun || !self.changes.push(&change);
    }

    fn take(&mut self, max_len: usize) -> News {
        let changes = NotifyWriter::new(self.scope.max_len);
        let changes = core::mem::replace(&mut self.changes, changes).finish();
        let is_overrun = core::mem::take(&mut self.is_overrun);
        self.is_due = false;
        if is_overrun || changes.len() > max_len {
            return News::TooMuch;
        }
        News::Changes(changes)
    }

    fn wake(self) -> impl Iterator<Item = (ConnectionId, Notice)> {
        self.waiting.into_iter().map(changed)
    }
}
