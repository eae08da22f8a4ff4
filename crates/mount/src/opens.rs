//! The open files of an inode, and the lease that protects its pages in the kernel.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::lock::Mutex as Gate;
use smbeam_client::{File, Guid, LeaseState};

use crate::handles::lock;
use crate::locks::Locks;

/// Time for which a file without a lease asks for none again.
const REFUSAL: Duration = Duration::from_secs(1);

/// A file that a program has open.
pub(crate) struct OpenFile {
    pub(crate) ino: u64,
    pub(crate) file: File,
    pub(crate) is_readable: bool,
    pub(crate) is_writable: bool,
    /// Whether each write goes to the end of the file. O_APPEND
    pub(crate) is_append: bool,
    /// The opens of the inode, with this one.
    pub(crate) opens: Arc<Opens>,
}

/// The open files of an inode.
pub(crate) struct Opens {
    pub(crate) ino: u64,
    files: Mutex<Files>,
    /// Byte-range locks of programs.
    pub(crate) locks: Locks,
    /// One task at a time appends, or asks for a lease.
    pub(crate) gate: Gate<()>,
}

#[derive(Default)]
struct Files {
    list: Vec<Arc<OpenFile>>,
    /// Keys of the leases with a callback. A lease ends with its last open.
    watched: HashSet<Guid>,
    refused: Option<Instant>,
    /// Whether the kernel can have pages from before a lease was lost.
    has_stale_pages: bool,
}

impl Opens {
    pub(crate) fn new(ino: u64) -> Arc<Self> {
        Arc::new(Self {
            ino,
            files: Mutex::default(),
            locks: Locks::default(),
            gate: Gate::new(()),
        })
    }

    pub(crate) fn add(&self, file: &Arc<OpenFile>) {
        lock(&self.files).list.push(Arc::clone(file));
    }

    pub(crate) fn remove(&self, file: &Arc<OpenFile>) {
        let mut files = lock(&self.files);
        files.list.retain(|it| !Arc::ptr_eq(it, file));
        if files.list.is_empty() {
            files.watched.clear();
            files.refused = None;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.files).list.is_empty()
    }

    /// Returns an open file that `suits`.
    pub(crate) fn find(&self, suits: impl Fn(&OpenFile) -> bool) -> Option<Arc<OpenFile>> {
        lock(&self.files).list.iter().find(|it| suits(it)).cloned()
    }

    /// Whether a lease of an open has these rights now. The client takes a right away before it
    /// runs the callback of the break, so pages that a request gets afterwards are not protected.
    pub(crate) fn holds(&self, rights: LeaseState) -> bool {
        let holds = |open: &OpenFile| {
            let lease = open.file.lease();
            lease.is_some_and(|lease| lease.state.contains(rights))
        };
        self.find(holds).is_some()
    }

    /// Takes note of a lease. Returns whether it has no callback yet.
    pub(crate) fn watch(&self, key: Guid) -> bool {
        lock(&self.files).watched.insert(key)
    }

    /// Takes note that the server granted no right to cache.
    pub(crate) fn refuse(&self) {
        lock(&self.files).refused = Some(Instant::now());
    }

    /// Takes note that a lease was lost, and that another one follows.
    pub(crate) fn note_stale_pages(&self) {
        lock(&self.files).has_stale_pages = true;
    }

    /// Whether the kernel can have pages from before a lease was lost. The caller lets it drop
    /// them.
    pub(crate) fn take_stale_pages(&self) -> bool {
        std::mem::take(&mut lock(&self.files).has_stale_pages)
    }

    /// Whether the server refused a lease a short time ago.
    pub(crate) fn is_refused(&self) -> bool {
        let refused = lock(&self.files).refused;
        refused.is_some_and(|at| at.elapsed() < REFUSAL)
    }
}
