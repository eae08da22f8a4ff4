//! When a file goes: delete pending and delete on close. \[MS-FSA\] 2.1.5.5, 2.1.5.15.3
//!
//! A file that is to go keeps its name until its last open is closed. Then the name is removed
//! through the open that asked for it: with the rights of who asked, and by the name that it
//! knows. That open is *parked* when its client closes it before others do.

use alloc::vec::Vec;

use super::oplock::Mail;
use super::{FileRecord, FileTable};
use crate::file::{FileKey, LocalOpen};
use crate::path::SharePath;

/// A file is to go with its last open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PendingDelete {
    /// The open that asked for it.
    pub(super) file: LocalOpen,
    /// The name to remove.
    pub(super) path: SharePath,
    /// Whether the client closed that open already: it lasts for this purpose only.
    is_parked: bool,
}

/// What an open leaves to be done in the file system when it goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Departure {
    /// A name to remove first, through this open. [`FileTable::forget`] ends it.
    pub(crate) unlink: Option<(LocalOpen, SharePath)>,
    /// What to close then.
    pub(crate) close: Vec<LocalOpen>,
    /// Whom to tell then: requests that waited for an oplock or a lock of this open.
    pub(crate) mail: Mail,
}

impl Departure {
    /// Nothing but to close it.
    fn closing(open: LocalOpen) -> Self {
        Self {
            close: Vec::from([open]),
            ..Self::default()
        }
    }
}

impl FileTable {
    /// An open goes. Unless something is unlinked the file is forgotten with its last one.
    pub(crate) fn leave(&self, key: FileKey, open: LocalOpen) -> Departure {
        let mut files = self.files.lock();
        let Some(file) = files.get_mut(&key) else {
            return Departure::closing(open);
        };
        let departure = file.leave(open);
        if departure.unlink.is_none() && file.opens.is_empty() {
            files.remove(&key);
        }
        departure
    }

    /// An open goes as if it had never been: the request that made it failed.
    pub(crate) fn withdraw(&self, key: FileKey, open: LocalOpen) -> Departure {
        if let Some(file) = self.files.lock().get_mut(&key) {
            let mut records = file.opens.iter_mut();
            if let Some(record) = records.find(|record| record.file == open) {
                record.delete_on_close = false;
            }
        }
        self.leave(key, open)
    }

    /// The name of a file that went is removed, or could not be: it is as good as closed.
    pub(crate) fn forget(&self, key: FileKey) {
        let mut files = self.files.lock();
        if files.get(&key).is_some_and(|file| file.opens.is_empty()) {
            files.remove(&key);
        }
    }

    /// The file is to go with its last open. Nothing changes where it is to go anyway.
    pub(crate) fn set_delete_pending(&self, key: FileKey, open: LocalOpen) {
        if let Some(file) = self.files.lock().get_mut(&key) {
            file.set_delete_pending(open);
        }
    }

    /// The file is to stay after all. Tells which parked open is to be closed.
    pub(crate) fn clear_delete_pending(&self, key: FileKey) -> Option<LocalOpen> {
        let mut files = self.files.lock();
        let delete = files.get_mut(&key)?.delete.take()?;
        delete.is_parked.then_some(delete.file)
    }

    /// Whether the file is to go with its last open.
    pub(crate) fn is_delete_pending(&self, key: FileKey) -> bool {
        let files = self.files.lock();
        files.get(&key).is_some_and(|file| file.delete.is_some())
    }
}

impl FileRecord {
    fn set_delete_pending(&mut self, open: LocalOpen) {
        if self.delete.is_some() {
            return;
        }
        let record = self.opens.iter().find(|record| record.file == open);
        self.delete = record.map(|record| PendingDelete {
            file: open,
            path: record.path.clone(),
            is_parked: false,
        });
    }

    fn leave(&mut self, open: LocalOpen) -> Departure {
        let index = self.opens.iter().position(|record| record.file == open);
        let Some(index) = index else {
            return Departure::closing(open);
        };
        // [MS-FSA] 2.1.5.5: FILE_DELETE_ON_CLOSE counts from this close on, not before.
        if self.opens[index].delete_on_close {
            self.set_delete_pending(open);
        }
        let record = self.opens.swap_remove(index);
        let mut departure = match &mut self.delete {
            Some(delete) if self.opens.is_empty() => delete.unlink(open),
            Some(delete) if delete.file == open => {
                delete.is_parked = true;
                Departure::default()
            }
            _ => Departure::closing(open),
        };
        self.gone(&record, &mut departure.mail);
        self.locks.leave(open, &mut departure.mail);
        departure
    }
}

impl PendingDelete {
    /// What is left to do when the last open goes.
    fn unlink(&self, last: LocalOpen) -> Departure {
        let mut close = Vec::from([last]);
        if self.file != last {
            assert!(
                self.is_parked,
                "an open that is gone was the last or was parked"
            );
            close.push(self.file);
        }
        Departure {
            unlink: Some((self.file, self.path.clone())),
            close,
            mail: Mail::new(),
        }
    }
}
