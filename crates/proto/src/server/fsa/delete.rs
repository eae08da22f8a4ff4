//! Deletion of files: delete pending and delete on close. \[MS-FSA\] 2.1.5.5, 2.1.5.15.3
//!
//! A deletion is that of one name of a file. The name stays until the last open by it, on any
//! stream of the file, is closed. Opens by other links do not count: cifs.ko keeps closed files
//! open, and removes a directory with another link of such a file. Samba does the same, and
//! \[MS-FSA\] 2.1.5.15.3 marks the link. A named stream that is marked keeps its name until its
//! last open is closed. Then the name is removed through the open that asked for the deletion,
//! with the rights of that open and by its name. The open is *parked* if its client closes it
//! before other clients close theirs.
//!
//! With POSIX semantics the name of a file is removed when that open is closed. The other opens
//! stay valid, and the name stays marked for deletion until the last of them is closed. The same
//! happens when only opens of the SMB3 POSIX extensions are left, as with Samba: they do not keep
//! the name.

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

/// The mark for deletion of a name of a file, or of a named stream.
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
        if close.unlink.is_none() && file.is_unused() {
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
    /// file or stream leaves the table, unless it has opens. `open` asked for the deletion.
    pub(crate) fn forget(&self, key: FileKey, open: LocalOpen, removed: &SharePath) {
        let mut files = self.files.lock();
        let Some(file) = files.file_mut(key) else {
            return;
        };
        if removed.stream().is_some() {
            file.forget_stream(key.stream);
        } else {
            file.forget_name(open);
        }
        if file.is_unused() {
            files.remove(key);
        }
        if removed.stream().is_none() {
            files.removals.add(key);
        }
    }

    /// Number of names of files that were removed so far. An [`OpenAttempt`] has the number of the
    /// time before the file system opened the file.
    ///
    /// [`OpenAttempt`]: super::caching::OpenAttempt
    pub(crate) fn removals(&self) -> u64 {
        self.files.lock().removals.count()
    }

    /// Marks the name of an open for deletion, or the named stream if the open is one. A mark that
    /// exists does not change. `is_posix`: the name of the file goes when this open is closed, and
    /// not with the last open.
    pub(crate) fn set_delete_pending(&self, key: FileKey, open: LocalOpen, is_posix: bool) {
        if let Some(file) = self.files.lock().file_mut(key) {
            file.set_delete_pending(key, open, is_posix);
        }
    }

    /// Removes the mark for deletion of the name of an open, or of the named stream, unless the
    /// name is gone. Returns a parked open, which the caller closes.
    pub(crate) fn clear_delete_pending(&self, key: FileKey, open: LocalOpen) -> Option<LocalOpen> {
        let mut files = self.files.lock();
        let mark = files.file_mut(key)?.take_mark(key.stream, open)?;
        mark.is_parked.then_some(mark.file)
    }

    /// Whether the name of an open is marked for deletion, or its named stream.
    pub(crate) fn is_delete_pending(&self, key: FileKey, open: LocalOpen) -> bool {
        let files = self.files.lock();
        let file = files.file(key);
        file.is_some_and(|file| file.is_delete_pending(key.stream, open))
    }

    /// Whether any name of the file is marked for deletion, or the stream.
    pub(crate) fn has_delete_pending(&self, key: FileKey) -> bool {
        let files = self.files.lock();
        let is_marked = |file: &FileRecord| {
            !file.deletes.is_empty() || file.is_stream_delete_pending(key.stream)
        };
        files.file(key).is_some_and(is_marked)
    }

    /// Number of names of the file that are marked for deletion and exist.
    pub(crate) fn names_to_delete(&self, key: FileKey) -> usize {
        let files = self.files.lock();
        let deletes = files.file(key).map_or(&[][..], |file| &file.deletes);
        deletes.iter().filter(|delete| !delete.is_gone).count()
    }
}

impl FileRecord {
    /// Whether the record has neither opens nor a deletion in progress.
    pub(super) fn is_unused(&self) -> bool {
        !self.has_opens() && self.deletes.is_empty()
    }

    /// An open of a stream.
    fn open(&self, stream: StreamId, open: LocalOpen) -> Option<&OpenRecord> {
        self.streams.get(stream)?.open(open)
    }

    /// Whether the name of an open is marked for deletion, or its named stream.
    fn is_delete_pending(&self, stream: StreamId, open: LocalOpen) -> bool {
        let is_marked = |record| self.deletes.iter().any(|delete| delete.is_of(record));
        self.open(stream, open).is_some_and(is_marked) || self.is_stream_delete_pending(stream)
    }

    /// Whether a named stream is marked for deletion by itself.
    fn is_stream_delete_pending(&self, stream: StreamId) -> bool {
        let is_marked = |stream: &StreamRecord| stream.delete.is_some();
        self.streams.get(stream).is_some_and(is_marked)
    }

    /// Whether a new open of a stream fails, because its name or the stream is to go.
    pub(super) fn refuses(&self, stream: StreamId, new: &OpenRecord) -> bool {
        let is_in_the_way = |delete: &PendingDelete| !delete.is_gone && delete.is_of(new);
        self.deletes.iter().any(is_in_the_way) || self.is_stream_delete_pending(stream)
    }

    /// Whether any open of any stream is by the name of a deletion.
    fn has_opens_of(&self, delete: &PendingDelete) -> bool {
        let mut opens = self.streams.values().flat_map(|stream| &stream.opens);
        opens.any(|open| delete.is_of(open))
    }

    /// Whether any open keeps the name of a deletion. Those of the SMB3 POSIX extensions do not.
    fn keeps_name(&self, delete: &PendingDelete) -> bool {
        let mut opens = self.streams.values().flat_map(|stream| &stream.opens);
        opens.any(|open| !open.sharing.is_posix && delete.is_of(open))
    }

    /// A named stream was removed.
    fn forget_stream(&mut self, stream: StreamId) {
        let is_closed = |stream: &StreamRecord| stream.opens.is_empty();
        if self.streams.get(stream).is_some_and(is_closed) {
            self.streams.remove(stream);
        }
    }

    /// The name that `open` asked to delete was removed. With POSIX semantics the mark stays while
    /// the name has opens.
    fn forget_name(&mut self, open: LocalOpen) {
        let is_it = |delete: &PendingDelete| delete.file == open && delete.is_removed;
        let Some(index) = self.deletes.iter().position(is_it) else {
            return;
        };
        let delete = &self.deletes[index];
        let is_twin = |other: &PendingDelete| {
            other.is_gone && other.file.share == delete.file.share && other.path == delete.path
        };
        // A name can be made and deleted many times while an open of its first file stays.
        if self.has_opens_of(delete) && !self.deletes.iter().any(is_twin) {
            self.deletes[index].is_gone = true;
        } else {
            self.deletes.swap_remove(index);
        }
        self.drop_unused_marks();
    }

    /// Removes the marks of names that are gone and have no open.
    fn drop_unused_marks(&mut self) {
        let mut deletes = core::mem::take(&mut self.deletes);
        deletes.retain(|delete| !delete.is_gone || self.has_opens_of(delete));
        self.deletes = deletes;
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

    /// Takes the mark of the name of an open, or of its named stream, unless the name is gone.
    fn take_mark(&mut self, stream: StreamId, open: LocalOpen) -> Option<PendingDelete> {
        if stream != StreamId::DATA {
            let mark = self.streams.get_mut(stream)?.delete.take();
            return mark.map(|mark| *mark);
        }
        let record = self.open(stream, open)?;
        let is_it = |delete: &PendingDelete| !delete.is_removed && delete.is_of(record);
        let index = self.deletes.iter().position(is_it)?;
        Some(self.deletes.swap_remove(index))
    }

    fn set_delete_pending(&mut self, key: FileKey, open: LocalOpen, is_posix: bool) {
        let Some(record) = self.open(key.stream, open) else {
            return;
        };
        let delete = PendingDelete {
            file: open,
            path: record.path.clone(),
            parent_lease: record.parent_lease,
            is_parked: false,
            is_posix: is_posix && key.stream == StreamId::DATA,
            is_removed: false,
            is_gone: false,
        };
        let is_marked = |delete: &PendingDelete| !delete.is_gone && delete.is_of(record);
        if key.stream == StreamId::DATA && !self.deletes.iter().any(is_marked) {
            self.deletes.push(delete);
        } else if let Some(stream) = self.streams.get_mut(key.stream)
            && key.stream != StreamId::DATA
        {
            stream.delete.get_or_insert(Box::new(delete));
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
        let close = self.remaining(key.stream, &record);
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
    fn remaining(&mut self, id: StreamId, record: &OpenRecord) -> Close {
        let stream = self.streams.get(id);
        let is_last = stream.is_some_and(|stream| stream.opens.is_empty());
        let close = match self.last_by_name(record) {
            Some(close) => close,
            None if id == StreamId::DATA => self.remaining_by_name(record),
            None => return self.remaining_of_stream(id, record, is_last),
        };
        if is_last {
            self.streams.remove(id);
        }
        close
    }

    /// The removal of the name of an open, if no other open keeps the name. The last open of the
    /// file ends the deletions of its streams too.
    fn last_by_name(&mut self, record: &OpenRecord) -> Option<Close> {
        let is_it = |delete: &PendingDelete| !delete.is_removed && delete.is_of(record);
        let index = self.deletes.iter().position(is_it)?;
        let delete = &self.deletes[index];
        let is_closed = delete.is_parked || delete.file == record.file;
        if !is_closed || self.keeps_name(delete) {
            return None;
        }
        let delete = &mut self.deletes[index];
        delete.is_removed = true;
        let mut close = delete.unlink(record.file, record.parent_lease);
        if self.streams.values().all(|stream| stream.opens.is_empty()) {
            let marks = self.streams.values().filter_map(|it| it.delete.as_deref());
            let parked = marks.filter(|mark| mark.is_parked).map(|mark| mark.file);
            close.close.extend(parked);
            self.streams.clear();
        }
        Some(close)
    }

    /// The work after an open of the file with other opens by its name, or no mark.
    fn remaining_by_name(&mut self, record: &OpenRecord) -> Close {
        let is_it = |delete: &&mut PendingDelete| !delete.is_removed && delete.file == record.file;
        if let Some(delete) = self.deletes.iter_mut().find(is_it) {
            if delete.is_posix {
                delete.is_removed = true;
                return delete.unlink(record.file, record.parent_lease);
            }
            delete.is_parked = true;
            return Close::default();
        }
        self.drop_unused_marks();
        Close::of(record.file)
    }

    /// The work after an open of a named stream of a file that keeps its name.
    fn remaining_of_stream(&mut self, id: StreamId, record: &OpenRecord, is_last: bool) -> Close {
        let stream = self.streams.get_mut(id).expect("it had the open");
        match &mut stream.delete {
            Some(delete) if is_last => return delete.unlink(record.file, record.parent_lease),
            Some(delete) if delete.file == record.file => {
                delete.is_parked = true;
                return Close::default();
            }
            _ => {}
        }
        if is_last {
            self.streams.remove(id);
        }
        Close::of(record.file)
    }
}

impl PendingDelete {
    /// Whether an open is by the name that the deletion removes. The names of opens through another
    /// share cannot be compared: such an open counts.
    fn is_of(&self, open: &OpenRecord) -> bool {
        self.file.share != open.file.share || self.path.is_same_file(&open.path)
    }

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
