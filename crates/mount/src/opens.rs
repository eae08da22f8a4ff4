//! The open files of an inode.

use std::sync::{Arc, Mutex};

use smbeam_client::File;

use crate::handles::lock;

/// A file that a program has open.
pub(crate) struct OpenFile {
    pub(crate) ino: u64,
    pub(crate) file: File,
    pub(crate) is_readable: bool,
    pub(crate) is_writable: bool,
    /// Whether each write goes to the end of the file. O_APPEND
    pub(crate) is_append: bool,
}

/// The open files of an inode.
pub(crate) struct Opens {
    pub(crate) ino: u64,
    files: Mutex<Vec<Arc<OpenFile>>>,
}

impl Opens {
    pub(crate) fn new(ino: u64) -> Arc<Self> {
        Arc::new(Self {
            ino,
            files: Mutex::default(),
        })
    }

    pub(crate) fn add(&self, file: &Arc<OpenFile>) {
        lock(&self.files).push(Arc::clone(file));
    }

    pub(crate) fn remove(&self, file: &Arc<OpenFile>) {
        lock(&self.files).retain(|it| !Arc::ptr_eq(it, file));
    }

    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.files).is_empty()
    }

    /// Returns an open file that `suits`.
    pub(crate) fn find(&self, suits: impl Fn(&OpenFile) -> bool) -> Option<Arc<OpenFile>> {
        lock(&self.files).iter().find(|it| suits(it)).cloned()
    }
}
