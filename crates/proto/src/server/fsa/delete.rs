//! Deletion of files: delete pending and delete on close. \[MS-FSA\] 2.1.5.5, 2.1.5.15.3
//!
//! A file that is marked for deletion keeps its name until its last open, on any of its streams,
//! is closed. A named stream that is marked keeps its name until its last open is closed. Then the
//! name is removed through the open that asked for the deletion, with the rights of that open and
//! by its name. The open is *parked* if its client closes it before other clients close theirs.
//!
//! With POSIX semantics the name of a file is removed when that open is closed. The other opens
//! stay valid, and the file stays marked for deletion until the last of them is closed.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use wire::Guid;
use wire::access::{AccessMask, ShareAccess};

use super::caching::LeaseId;
use super::{FileRecord, FileTable, OpenRecord, Sharing, StreamRecord};
use crate::file::{FileKey, LocalOpen, StreamId};
use crate::path::SharePath;
use crate::server::notices::Notices;
use crate::time::Instant;

/// The mark for deletion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PendingDelete {
    /// The open that requested the deletion.
    pub(super) file: LocalOpen,
    /// The name to remove.
    pub(super) path: SharePath,
    /// The key of the lease on the parent directory that the open named.
    parent_lease: Option<Guid>,
    /// Whether the client has closed that open: then the server keeps it open to remove the name.
    is_parked: bool,
    /// Whether the name goes when that open is closed, although others stay: POSIX semantics.
    is_posix: bool,
    /// Whether the name is being removed, or is gone, although opens stay.
    is_removed: bool,
    /// Whether the name is gone: only another name leads to the file.
    is_gone: bool,
}

/// The work that remains when an open is closed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Close {
    /// The name to remove first, and the open to remove it through. The caller then calls
    /// [`FileTable::forget`].
    pub(crate) unlink: Option<(LocalOpen, SharePath)>,
    /// The opens of the file system to close next.
    pub(crate) close: Vec<LocalOpen>,
    /// The name that the open had, and the key of the lease on its parent directory.
    pub(crate) entry: Option<(SharePath, Option<Guid>)>,
    /// With `unlink`: the key of the lease on the parent directory that the deletion does not
    /// break. smbtorture smb2.dirlease.unlink_different_set_and_close
    pub(crate) own_parent_lease: Option<Guid>,
    /// The notices to send last: they wake requests that waited for this open's caching rights or
    /// locks.
    pub(crate) notices: Notices,
}

impl Close {
    /// Closes an open, no more.
    fn of(open: LocalOpen) -> Self {
        Self {
            close: Vec::from([open]),
            ..Self::default()
        }
    }
}

impl FileTable {
    /// Closes an open. The file leaves the table with its last open, unless its name has to be
    /// removed first.
    ///
    /// An open with FILE_DELETE_ON_CLOSE marks the file for deletion: leases of other clients lose
    /// HANDLE_CACHING, by `deadline` at the latest.
    pub(crate) fn close(&self, key: FileKey, open: LocalOpen, deadline: Instant) -> Close {
        let mut files = self.files.lock();
        let Some(file) = files.file_mut(key) else {
            return Close::of(open);
        };
        let (close, ended) = file.close(key, open, deadline);
        let is_unused = close.unlink.is_none() && !file.has_opens();
        if is_unused {
            files.remove(key);
        }
        if ended.is_some_and(|lease| files.remove_lease(lease)) {
            self.directory_leases.fetch_sub(1, Ordering::SeqCst);
        }
        close
    }

    /// Closes an open of a CREATE that failed, without the effect of FILE_DELETE_ON_CLOSE.
    pub(crate) fn withdraw(&self, key: FileKey, open: LocalOpen, deadline: Instant) -> Close {
        if let Some(stream) = self.files.lock().stream_mut(key)
            && let Some(record) = stream.open_mut(open)
        {
            record.delete_on_close = false;
        }
        self.close(key, open, deadline)
    }

    /// The name `removed` of a deleted file or stream was removed, or could not be removed: the
    /// file or stream leaves the table, unless it has opens. `key` is that of the closed open.
    pub(crate) fn forget(&self, key: FileKey, removed: &SharePath) {
        let mut files = self.files.lock();
        let Some(file) = files.file_mut(key) else {
            return;
        };
        let is_stream = removed.stream().is_some();
        let is_closed = |stream: &StreamRecord| stream.opens.is_empty();
        if is_stream && file.streams.get(key.stream).is_some_and(is_closed) {
            file.streams.remove(key.stream);
        }
        // The name of the file itself may be being removed too.
        let is_deleted = is_stream && file.delete.is_some();
        if !file.has_opens() && !is_deleted {
            files.remove(key);
        } else if !is_stream && let Some(delete) = &mut file.delete {
            delete.is_gone = delete.is_removed;
        }
    }

    /// Marks the file of an open for deletion, or the named stream if the open is one. A mark that
    /// exists does not change. `is_posix`: the name of the file goes when this open is closed, and
    /// not with the last open.
    pub(crate) fn set_delete_pending(&self, key: FileKey, open: LocalOpen, is_posix: bool) {
        if let Some(file) = self.files.lock().file_mut(key) {
            file.set_delete_pending(key, open, is_posix);
        }
    }

    /// Removes the mark for deletion of the file, or of the named stream, unless the name is gone.
    /// Returns a parked open, which the caller closes.
    pub(crate) fn clear_delete_pending(&self, key: FileKey) -> Option<LocalOpen> {
        let mut files = self.files.lock();
        let mark = files.file_mut(key)?.delete_mut(key.stream)?;
        let delete = mark.take_if(|delete| !delete.is_removed)?;
        delete.is_parked.then_some(delete.file)
    }

    /// Whether the stream is marked for deletion, by itself or with its file.
    pub(crate) fn is_delete_pending(&self, key: FileKey) -> bool {
        let files = self.files.lock();
        (files.file(key)).is_some_and(|file| file.is_delete_pending(key.stream))
    }
}

impl FileRecord {
    /// Whether a stream is marked for deletion, by itself or with the file.
    pub(super) fn is_delete_pending(&self, stream: StreamId) -> bool {
        let is_marked = |stream: &StreamRecord| stream.delete.is_some();
        self.delete.is_some() || self.streams.get(stream).is_some_and(is_marked)
    }

    /// Whether new opens of a stream fail, because its name or that of the file is to go.
    pub(super) fn refuses_opens(&self, stream: StreamId) -> bool {
        let has_name = |delete: &PendingDelete| !delete.is_gone;
        let is_marked = |stream: &StreamRecord| stream.delete.is_some();
        self.delete.as_deref().is_some_and(has_name)
            || self.streams.get(stream).is_some_and(is_marked)
    }

    /// Whether the opens of named streams permit this open of the file: a deletion of the file
    /// deletes its streams. smbtorture smb2.streams.sharemodes
    pub(super) fn shares_deletion(&self, stream: StreamId, new: Sharing) -> bool {
        if stream != StreamId::DATA || !new.access.contains(AccessMask::DELETE) {
            return true;
        }
        let shares = |open: &OpenRecord| open.sharing.share.contains(ShareAccess::DELETE);
        let mut named = self.streams.iter().filter(|(id, _)| *id != StreamId::DATA);
        named.all(|(_, stream)| stream.opens.iter().all(shares))
    }

    /// The mark for deletion of the file, or of a named stream.
    fn delete_mut(&mut self, stream: StreamId) -> Option<&mut Option<Box<PendingDelete>>> {
        match stream {
            StreamId::DATA => Some(&mut self.delete),
            stream => (self.streams.get_mut(stream)).map(|stream| &mut stream.delete),
        }
    }

    fn set_delete_pending(&mut self, key: FileKey, open: LocalOpen, is_posix: bool) {
        let stream = self.streams.get(key.stream);
        let Some(record) = stream.and_then(|stream| stream.open(open)) else {
            return;
        };
        let delete = Box::new(PendingDelete {
            file: open,
            path: record.path.clone(),
            parent_lease: record.parent_lease,
            is_parked: false,
            is_posix: is_posix && key.stream == StreamId::DATA,
            is_removed: false,
            is_gone: false,
        });
        if let Some(mark) = self.delete_mut(key.stream) {
            mark.get_or_insert(delete);
        }
    }

    /// Begins the deletion that an open with FILE_DELETE_ON_CLOSE asks for with its close: other
    /// clients give up HANDLE_CACHING.
    fn delete_on_close(
        &mut self,
        key: FileKey,
        open: LocalOpen,
        deadline: Instant,
        notices: &mut Notices,
    ) {
        let stream = self.streams.get(key.stream);
        let Some(record) = stream.and_then(|stream| stream.open(open)) else {
            return;
        };
        let holder = record.holder;
        self.set_delete_pending(key, open, false);
        for (id, stream) in self.streams.iter_mut() {
            if key.stream == StreamId::DATA || key.stream == id {
                stream.break_handle_leases(holder, deadline, notices);
            }
        }
    }

    /// Closes an open. Returns also its lease, if that has ended.
    fn close(
        &mut self,
        key: FileKey,
        open: LocalOpen,
        deadline: Instant,
    ) -> (Close, Option<LeaseId>) {
        let stream = self.streams.get(key.stream);
        let mut records = stream.into_iter().flat_map(|stream| &stream.opens);
        let position = records.position(|record| record.file == open);
        let (Some(stream), Some(index)) = (stream, position) else {
            return (Close::of(open), None);
        };
        // [MS-FSA] 2.1.5.5: FILE_DELETE_ON_CLOSE counts from this close on, not before.
        let mut notices = Notices::new();
        if stream.opens[index].delete_on_close {
            self.delete_on_close(key, open, deadline, &mut notices);
        }
        let stream = self.streams.get_mut(key.stream).expect("it has the open");
        let record = stream.opens.swap_remove(index);
        let ended = stream.closed(record.holder, &mut notices);
        stream.locks.leave(open, &mut notices);
        let close = self.remaining(key.stream, open, record.parent_lease);
        let entry = Some((record.path, record.parent_lease));
        (
            Close {
                entry,
                notices,
                ..close
            },
            ended,
        )
    }
}

impl FileRecord {
    /// The work that remains after an open has left its stream.
    fn remaining(&mut self, id: StreamId, open: LocalOpen, parent_lease: Option<Guid>) -> Close {
        let is_unused = self.streams.values().all(|stream| stream.opens.is_empty());
        if is_unused && let Some(delete) = &self.delete {
            let mut close = match delete.is_removed {
                true => Close::of(open),
                false => delete.unlink(open, parent_lease),
            };
            let marks = self.streams.values().filter_map(|it| it.delete.as_deref());
            let parked = marks.filter(|mark| mark.is_parked).map(|mark| mark.file);
            close.close.extend(parked);
            self.streams.clear();
            return close;
        }
        let stream = self.streams.get_mut(id).expect("it had the open");
        let is_last = stream.opens.is_empty();
        let mark = match id {
            StreamId::DATA => &mut self.delete,
            _ => &mut stream.delete,
        };
        match mark {
            Some(delete) if is_last && id != StreamId::DATA => delete.unlink(open, parent_lease),
            Some(delete) if delete.file == open && delete.is_posix => {
                delete.is_removed = true;
                let close = delete.unlink(open, parent_lease);
                if is_last {
                    self.streams.remove(id);
                }
                close
            }
            Some(delete) if delete.file == open => {
                delete.is_parked = true;
                if is_last {
                    self.streams.remove(id);
                }
                Close::default()
            }
            _ => {
                if is_last {
                    self.streams.remove(id);
                }
                Close::of(open)
            }
        }
    }
}

impl PendingDelete {
    /// The work that remains when the last open is closed.
    fn unlink(&self, last: LocalOpen, parent_lease: Option<Guid>) -> Close {
        let mut close = Vec::from([last]);
        if self.file != last {
            assert!(
                self.is_parked,
                "a closed open was the last one or was parked"
            );
            close.push(self.file);
        }
        Close {
            unlink: Some((self.file, self.path.clone())),
            close,
            own_parent_lease: parent_lease.filter(|_| parent_lease == self.parent_lease),
            ..Close::default()
        }
    }
}
