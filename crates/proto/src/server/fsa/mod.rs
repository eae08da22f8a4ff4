//! The decisions of \[MS-FSA\]: which opens a file may have at one time, what clients may cache of
//! it, which bytes are locked, and when the file is deleted.
//!
//! Share modes, caching and byte-range locks belong to a stream of a file. A deletion is that of a
//! named stream, or that of the file with all its streams. \[MS-FSA\] 2.1.1.3, 2.1.1.5

pub(crate) mod byte_range;
pub(crate) mod caching;
mod delete;
pub(crate) mod file_locks;
mod files;
mod reconnect;
mod removals;
mod share_access;
mod streams;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicUsize};

use spin::Mutex;
use wire::access::{AccessMask, OplockLevel, ShareAccess};
use wire::create_context::LeaseState;
use wire::upcase::is_same_name;
use wire::{Guid, Status};

use crate::file::{FileKey, LocalOpen, ShareId, StreamId};
use crate::path::{SharePath, StreamName};
use crate::server::config::Limits;
use crate::server::notices::{Notices, Waiter};
use crate::time::Instant;

use caching::{BreakTarget, DirectoryName, Holder, HolderId, LeaseId, OpenAttempt, RecentBreaks};
pub(crate) use delete::Close;
use delete::PendingDelete;
use file_locks::FileLocks;
use files::Files;
pub(crate) use share_access::Sharing;
use streams::Streams;

/// The largest offset in bytes: a signed number on the wire. \[MS-FSA\] 2.1.5.3
pub(crate) const MAX_OFFSET: u64 = i64::MAX as u64;
/// Bytes of the largest file: that of NTFS, as with Samba and smbtorture smb2.rw.invalid.
/// \[MS-FSA\] 2.1.5.4, MaxFileSize
pub(crate) const MAX_FILE_SIZE: u64 = 0x0FFF_FFFF_0000;

/// The open files of the server and the state of their opens.
#[derive(Debug, Default)]
pub(crate) struct FileTable {
    files: Mutex<Files>,
    /// Number of leases on directories. A check for none takes no lock.
    directory_leases: AtomicUsize,
}

/// One open file. It is in the table while it is open or is being deleted.
#[derive(Debug, Default)]
struct FileRecord {
    /// The open streams, and those that are being deleted. The others have no entry.
    streams: Streams,
    /// The names that will be deleted with the last open by them, at most one mark for each.
    deletes: Vec<PendingDelete>,
}

/// One open stream of a file.
#[derive(Debug, Default)]
struct StreamRecord {
    opens: Vec<OpenRecord>,
    /// The holders of caching rights.
    holders: Vec<Holder>,
    /// The breaks of leases on a directory in the last second.
    recent_breaks: Option<Box<RecentBreaks>>,
    /// Requests that wait for the end of a break. Empty unless a break is in progress.
    waiters: Vec<Waiter>,
    /// Whether any holder caches reads while other opens may write.
    has_readers: Arc<AtomicBool>,
    /// Byte-range locks.
    locks: Arc<FileLocks>,
    /// Set once the named stream will be deleted with its last open.
    delete: Option<Box<PendingDelete>>,
}

/// The result of an attempt to enter an open in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// The open is in the table.
    Entered,
    /// The open is not in the table: a name of the file was removed after the request began. The
    /// caller opens the name again.
    Removed,
    /// The open is not in the table. A notice wakes its waiter when it may try again. The caller
    /// calls [`FileTable::expire`] at this time at the latest.
    Wait(Instant),
}

/// The properties of an open for a snapshot.
#[derive(Clone, Debug)]
pub(crate) struct Description {
    pub(crate) path: SharePath,
    pub(crate) sharing: Sharing,
    /// The oplock level; while a break is in progress, the level before it.
    pub(crate) oplock: OplockLevel,
    /// The caching rights of its holder; while a break is in progress, the rights before it.
    pub(crate) rights: LeaseState,
}

/// One open of a stream.
#[derive(Clone, Debug)]
pub(crate) struct OpenRecord {
    /// Identifies the open.
    pub(crate) file: LocalOpen,
    /// The rights of the open and its share mode.
    pub(crate) sharing: Sharing,
    /// The name of the file as the file system spells it. A rename updates it.
    pub(crate) path: SharePath,
    /// FILE_DELETE_ON_CLOSE: the file will be deleted once this open is closed.
    pub(crate) delete_on_close: bool,
    /// Whether the open can do no more than read and write attributes.
    pub(crate) is_stat_only: bool,
    /// The holder of the caching rights of this open.
    pub(crate) holder: HolderId,
    /// The key of the client's lease on the parent directory. \[MS-SMB2\] 2.2.13.2.10
    pub(crate) parent_lease: Option<Guid>,
    /// Receives the break notifications; `None` until the open was granted rights.
    pub(crate) target: Option<BreakTarget>,
}

impl StreamRecord {
    fn open(&self, open: LocalOpen) -> Option<&OpenRecord> {
        self.opens.iter().find(|record| record.file == open)
    }

    fn open_mut(&mut self, open: LocalOpen) -> Option<&mut OpenRecord> {
        self.opens.iter_mut().find(|record| record.file == open)
    }

    fn describe(&self, open: &OpenRecord) -> Description {
        let mut holders = self.holders.iter();
        let holder = holders.find(|holder| holder.id() == open.holder);
        Description {
            path: open.path.clone(),
            sharing: open.sharing,
            oplock: holder.map_or(OplockLevel::NONE, Holder::oplock_before_break),
            rights: holder.map_or(LeaseState::NONE, Holder::rights_before_break),
        }
    }
}

impl FileTable {
    /// Enters an open in the table beside the other opens of the stream, once no caching right of
    /// another holder is in its way. Fails with DELETE_PENDING or SHARING_VIOLATION, and with
    /// INVALID_PARAMETER if the requested lease is on another stream.
    /// \[MS-FSA\] 2.1.5.1.2
    pub(crate) fn enter(
        &self,
        key: FileKey,
        record: OpenRecord,
        attempt: &OpenAttempt,
        notices: &mut Notices,
    ) -> Result<Admission, Status> {
        let mut files = self.files.lock();
        if files.removals.include(key, attempt.removals) {
            return Ok(Admission::Removed);
        }
        if let Some(lease) = attempt.lease
            && files.leased(lease).is_some_and(|other| other != key)
        {
            return Err(Status::INVALID_PARAMETER);
        }
        let file = files.entry(key);
        // Once the name is gone, only another name leads to the file.
        if file.refuses(key.stream, &record) {
            return Err(Status::DELETE_PENDING);
        }
        let violates_file = !file.shares_deletion(key.stream, attempt.checked);
        let stream = file.streams.entry(key.stream);
        stream.expire(attempt.wait.now, notices);
        let is_compatible = |open: &OpenRecord| open.sharing.is_compatible(attempt.checked);
        let violates = violates_file || !stream.opens.iter().all(is_compatible);
        // Before the share modes: a client with HANDLE_CACHING may keep the file open without an
        // application that uses it.
        if let Some(until) = stream.break_for_open(attempt, record.holder, violates, notices) {
            return Ok(Admission::Wait(until));
        }
        if violates {
            return Err(Status::SHARING_VIOLATION);
        }
        let lease = record.holder.lease();
        push(&mut stream.opens, record);
        if let Some(lease) = lease {
            files.add_lease(lease, key);
        }
        Ok(Admission::Entered)
    }

    /// Whether the limits permit the client of a lease to use it: the lease exists, or its client
    /// and the server have fewer leases than the limits.
    pub(crate) fn has_space_for_lease(&self, lease: LeaseId, limits: &Limits) -> bool {
        let files = self.files.lock();
        let has_space = files.leases_of(lease.client) < limits.leases_per_client
            && files.leases() < limits.leases;
        has_space || files.leased(lease).is_some()
    }

    /// Number of leases of all clients.
    pub(crate) fn lease_count(&self) -> usize {
        self.files.lock().leases()
    }

    /// Whether the file has any open, on any of its streams, or is being deleted.
    pub(crate) fn is_open(&self, key: FileKey) -> bool {
        self.files.lock().file(key).is_some()
    }

    /// The opens of files below a directory. Windows refuses to rename the directory then.
    /// `is_posix`: the rename is one of the SMB3 POSIX extensions: their opens do not matter to it,
    /// as with Samba.
    pub(crate) fn opens_below(
        &self,
        share: ShareId,
        directory: &SharePath,
        is_posix: bool,
    ) -> BTreeSet<LocalOpen> {
        let is_below = |open: &&OpenRecord| {
            let counts = !(is_posix && open.sharing.is_posix);
            counts && open.file.share == share && open.path.is_below(directory)
        };
        let files = self.files.lock();
        let below = files.opens().filter(is_below);
        below.map(|open| open.file).collect()
    }

    /// Whether the opens of a directory permit a new name in it: Windows opens the directory to
    /// write, and shares reads and writes. An open that does not share writes, or that may delete
    /// the directory, is in the way. smbtorture smb2.rename.share_delete_and_delete_access.
    /// `is_posix`: the new name is one of the SMB3 POSIX extensions.
    pub(crate) fn is_open_to_names(
        &self,
        share: ShareId,
        directory: &SharePath,
        is_posix: bool,
    ) -> bool {
        let own = Sharing {
            access: AccessMask::FILE_ADD_FILE,
            share: ShareAccess::READ | ShareAccess::WRITE,
            is_posix,
        };
        let is_in_the_way = |open: &OpenRecord| {
            let is_it = is_same_name(open.path.as_str(), directory.as_str())
                && open.path.stream().is_none()
                && open.file.share == share;
            is_it && !open.sharing.is_compatible(own)
        };
        !self.any(is_in_the_way)
    }

    /// Replaces a name of a file in the opens of all its streams. Opens by other links keep their
    /// names.
    pub(crate) fn rename(&self, key: FileKey, share: ShareId, from: &SharePath, to: &SharePath) {
        let mut files = self.files.lock();
        let Some(file) = files.file_mut(key) else {
            return;
        };
        let mut leases = Vec::new();
        for open in file.streams.values_mut().flat_map(|it| &mut it.opens) {
            if open.file.share == share && open.path.is_same_file(from) {
                open.path = to.with_stream(open.path.stream().cloned());
                leases.extend(open.holder.lease());
            }
        }
        for delete in &mut file.deletes {
            if delete.file.share == share && delete.path.is_same_file(from) {
                delete.path = to.clone();
            }
        }
        files.rename_below(share, from, to);
        for lease in leases {
            if files.is_directory_lease(lease) {
                files.lease_directory(lease, DirectoryName::new(share, to));
            }
        }
    }

    /// Whether the file has an open beside those of the SMB3 POSIX extensions.
    pub(crate) fn is_open_to_others(&self, key: FileKey) -> bool {
        let files = self.files.lock();
        let streams = files
            .file(key)
            .into_iter()
            .flat_map(|it| it.streams.values());
        let mut opens = streams.flat_map(|stream| &stream.opens);
        opens.any(|open| !open.sharing.is_posix)
    }

    /// Whether a named stream of the file is open. Windows refuses to rename the file then.
    /// smbtorture smb2.streams.names3
    pub(crate) fn has_open_named_stream(&self, key: FileKey) -> bool {
        let files = self.files.lock();
        let file = files.file(key);
        let mut streams = file.into_iter().flat_map(|file| file.streams.iter());
        streams.any(|(id, stream)| id != StreamId::DATA && !stream.opens.is_empty())
    }

    /// Whether the file has an open stream of this name, by the name of the file.
    pub(crate) fn is_stream_open(
        &self,
        key: FileKey,
        share: ShareId,
        file: &SharePath,
        stream: &StreamName,
    ) -> bool {
        let is_it = |open: &OpenRecord| {
            let name = open.path.stream().map_or("", StreamName::as_str);
            open.file.share == share
                && open.path.is_same_file(file)
                && is_same_name(name, stream.as_str())
        };
        let files = self.files.lock();
        let mut streams = files
            .file(key)
            .into_iter()
            .flat_map(|file| file.streams.values());
        streams.any(|stream| stream.opens.iter().any(is_it))
    }

    /// Replaces the name of a named stream in its opens.
    pub(crate) fn rename_stream(&self, key: FileKey, to: &StreamName) {
        if let Some(stream) = self.files.lock().stream_mut(key) {
            for open in &mut stream.opens {
                open.path = open.path.with_stream(Some(to.clone()));
            }
            if let Some(delete) = &mut stream.delete {
                delete.path = delete.path.with_stream(Some(to.clone()));
            }
        }
    }

    /// The key of the lease on the parent directory that an open names.
    pub(crate) fn parent_lease(&self, key: FileKey, open: LocalOpen) -> Option<Guid> {
        let files = self.files.lock();
        files.stream(key)?.open(open)?.parent_lease
    }

    /// The current name of an open.
    pub(crate) fn path(&self, key: FileKey, open: LocalOpen) -> Option<SharePath> {
        let files = self.files.lock();
        Some(files.stream(key)?.open(open)?.path.clone())
    }

    /// The current properties of opens. Closed ones are left out. The table is locked once for
    /// each stream, however many opens it has.
    pub(crate) fn describe(
        &self,
        opens: impl Iterator<Item = (FileKey, LocalOpen)>,
    ) -> BTreeMap<LocalOpen, Description> {
        let mut wanted: BTreeMap<FileKey, BTreeSet<LocalOpen>> = BTreeMap::new();
        for (key, open) in opens {
            wanted.entry(key).or_default().insert(open);
        }
        let mut described = BTreeMap::new();
        for (key, wanted) in wanted {
            let files = self.files.lock();
            let Some(stream) = files.stream(key) else {
                continue;
            };
            let mut records: Vec<&OpenRecord> = stream.opens.iter().collect();
            records.retain(|record| wanted.contains(&record.file));
            described.extend(records.iter().map(|it| (it.file, stream.describe(it))));
        }
        described
    }

    /// Whether any open of any file fits. Walks the whole table: only for rare operations such as
    /// a rename.
    fn any(&self, is_it: impl Fn(&OpenRecord) -> bool) -> bool {
        let files = self.files.lock();
        let mut opens = files.opens();
        opens.any(is_it)
    }
}

/// Adds an item to a list that usually has one or two, and leaves little space unused: every open
/// file has two such lists. `Vec::push` starts with space for four.
fn push<T>(list: &mut Vec<T>, item: T) {
    if list.len() == list.capacity() {
        list.reserve_exact(list.len() / 2 + 1);
    }
    list.push(item);
}

#[cfg(test)]
mod tests;
