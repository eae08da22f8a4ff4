//! What \[MS-FSA\] decides: who may open a file beside whom, what a client may cache of it, who has
//! locked which bytes, and when a file goes.

pub(crate) mod byte_range;
mod delete;
pub(crate) mod file_locks;
pub(crate) mod oplock;
mod share_access;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::AtomicBool;

use spin::Mutex;
use wire::Status;
use wire::access::{AccessMask, OplockLevel, ShareAccess};

use crate::file::{FileKey, LocalOpen, ShareId};
use crate::path::{SharePath, is_same_name};

pub(crate) use delete::Departure;
use delete::PendingDelete;
use file_locks::FileLocks;
use oplock::{Arrival, Entrance, Held, Mail, Waiter};
pub(crate) use share_access::Sharing;

/// The largest offset: a signed number on the wire. \[MS-FSA\] 2.1.5.3
pub(crate) const MAX_OFFSET: u64 = i64::MAX as u64;
/// Bytes of the largest file: that of NTFS, which Samba and smbtorture smb2.rw.invalid take over.
/// \[MS-FSA\] 2.1.5.4, MaxFileSize
pub(crate) const MAX_FILE_SIZE: u64 = 0x0FFF_FFFF_0000;

/// The files that are open, and how.
#[derive(Debug, Default)]
pub(crate) struct FileTable {
    files: Mutex<BTreeMap<FileKey, FileRecord>>,
}

/// One open file. In the table for as long as it is open, or is being deleted.
#[derive(Debug, Default)]
struct FileRecord {
    opens: Vec<OpenRecord>,
    /// Set once the file is to go with its last open.
    delete: Option<PendingDelete>,
    /// Requests that wait until an oplock is broken: only while one is breaking.
    waiters: Vec<Waiter>,
    /// Whether any open holds level II.
    has_readers: Arc<AtomicBool>,
    /// Byte-range locks.
    locks: Arc<FileLocks>,
}

/// What the table knows of an open, for whoever looks on.
#[derive(Clone, Debug)]
pub(crate) struct Description {
    pub(crate) path: SharePath,
    pub(crate) sharing: Sharing,
    pub(crate) oplock: OplockLevel,
}

/// One open of a file.
#[derive(Clone, Debug)]
pub(crate) struct OpenRecord {
    /// The open: nothing else names it.
    pub(crate) file: LocalOpen,
    /// What it may do and allows.
    pub(crate) sharing: Sharing,
    /// Its name, as the file system spells it; kept up to date when it is renamed.
    pub(crate) path: SharePath,
    /// FILE_DELETE_ON_CLOSE: once this open is closed, the file is to go.
    pub(crate) delete_on_close: bool,
    /// Its oplock.
    pub(crate) held: Held,
}

impl OpenRecord {
    fn describe(&self) -> Description {
        Description {
            path: self.path.clone(),
            sharing: self.sharing,
            oplock: self.held.level(),
        }
    }
}

impl FileTable {
    /// Lets an open in beside those that are there, once they have given way. \[MS-FSA\] 2.1.5.1.2
    pub(crate) fn enter(
        &self,
        key: FileKey,
        record: OpenRecord,
        arrival: &Arrival,
        mail: &mut Mail,
    ) -> Result<Entrance, Status> {
        let mut files = self.files.lock();
        let file = files.entry(key).or_default();
        if file.delete.is_some() {
            return Err(Status::DELETE_PENDING);
        }
        file.expire(arrival.patience.now, mail);
        let is_compatible = |open: &OpenRecord| open.sharing.is_compatible(arrival.checked);
        let violates = !file.opens.iter().all(is_compatible);
        // Before the share modes: who holds BATCH may have closed the file, for all its user knows.
        if let Some(until) = file.give_way(arrival, violates, mail) {
            return Ok(Entrance::Wait(until));
        }
        if violates {
            return Err(Status::SHARING_VIOLATION);
        }
        file.opens.push(record);
        Ok(Entrance::Entered)
    }

    /// Whether anybody has the file open.
    pub(crate) fn is_open(&self, key: FileKey) -> bool {
        self.files.lock().contains_key(&key)
    }

    /// Whether anybody has something open beneath a directory. Windows refuses to rename it then.
    pub(crate) fn is_open_below(&self, share: ShareId, directory: &SharePath) -> bool {
        let is_below =
            |open: &OpenRecord| open.file.share == share && open.path.is_below(directory);
        self.any(is_below)
    }

    /// Whether a name may be made in a directory: Windows opens the directory to write, sharing
    /// reads and writes, and finds in its way who does not share writes or may delete it.
    /// smbtorture smb2.rename.share_delete_and_delete_access.
    pub(crate) fn is_open_to_names(&self, share: ShareId, directory: &SharePath) -> bool {
        let own = Sharing {
            access: AccessMask::FILE_ADD_FILE,
            share: ShareAccess::READ | ShareAccess::WRITE,
        };
        let is_in_the_way = |open: &OpenRecord| {
            let is_it = is_same_name(open.path.as_str(), directory.as_str());
            let is_it = is_it && open.file.share == share;
            is_it && !open.sharing.is_compatible(own)
        };
        !self.any(is_in_the_way)
    }

    /// Gives the opens of a name of the file another one. Opens by its other links keep theirs.
    pub(crate) fn rename(&self, key: FileKey, share: ShareId, from: &SharePath, to: &SharePath) {
        let mut files = self.files.lock();
        let Some(file) = files.get_mut(&key) else {
            return;
        };
        for open in &mut file.opens {
            if open.file.share == share && open.path == *from {
                open.path = to.clone();
            }
        }
        if let Some(delete) = &mut file.delete
            && delete.file.share == share
            && delete.path == *from
        {
            delete.path = to.clone();
        }
    }

    /// The name of an open, as it is now.
    pub(crate) fn path(&self, key: FileKey, open: LocalOpen) -> Option<SharePath> {
        let files = self.files.lock();
        let mut opens = files.get(&key)?.opens.iter();
        opens
            .find(|record| record.file == open)
            .map(|record| record.path.clone())
    }

    /// These opens, as they are now; those that are gone are left out. Each file is gone through
    /// once, under the lock, however many opens of it there are.
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
            let records = files.get(&key).map_or(&[][..], |file| &file.opens);
            let records = records
                .iter()
                .filter(|record| wanted.contains(&record.file));
            described.extend(records.map(|record| (record.file, record.describe())));
        }
        described
    }

    /// Looks through everything: for what is rare, such as a rename.
    fn any(&self, is_it: impl Fn(&OpenRecord) -> bool) -> bool {
        let files = self.files.lock();
        files.values().any(|file| file.opens.iter().any(&is_it))
    }
}

#[cfg(test)]
mod tests;
