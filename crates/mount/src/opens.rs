//! The open files of an inode, and the lease that protects its pages in the kernel.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use futures_util::lock::Mutex as Gate;
use smbeam_client::{File, Guid, LeaseState, Metadata};

use crate::cached_names::CachedNames;
use crate::handles::lock;
use crate::held::Held;
use crate::leased::DirectoryLease;
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
    /// Number of failed WRITEs of held data when the program last received an error.
    pub(crate) failures_seen: AtomicU64,
    /// Whether the program has written.
    pub(crate) has_written: AtomicBool,
    /// Whether the open can change mode, owner and times.
    pub(crate) may_change_owner: bool,
    /// The opens of the inode, with this one.
    pub(crate) opens: Arc<Opens>,
}

impl OpenFile {
    pub(crate) fn has_written(&self) -> bool {
        self.has_written.load(Ordering::Relaxed)
    }
}

/// The open files of an inode.
pub(crate) struct Opens {
    pub(crate) ino: u64,
    files: Mutex<Files>,
    /// Byte-range locks of programs.
    pub(crate) locks: Locks,
    directory: OnceLock<Arc<DirectoryLease>>,
    /// Written data that the server does not have.
    pub(crate) held: Held,
    /// One task at a time appends, or asks for a lease.
    pub(crate) gate: Gate<()>,
    /// Whether a write can clear bits of the mode: setuid or setgid.
    pub(crate) clears_bits: AtomicBool,
    /// The file as the server has reported it last, if an open of this mount has created it.
    created: Mutex<Option<Metadata>>,
}

#[derive(Default)]
struct Files {
    list: Vec<Arc<OpenFile>>,
    /// Opens that no program has.
    kept: Vec<Arc<OpenFile>>,
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
            directory: OnceLock::new(),
            held: Held::default(),
            gate: Gate::new(()),
            clears_bits: AtomicBool::new(false),
            created: Mutex::default(),
        })
    }

    /// The lease of the inode, which is a directory. `counted` counts the names of the mount.
    pub(crate) fn directory(&self, counted: &Arc<CachedNames>) -> &Arc<DirectoryLease> {
        let new = || Arc::new(DirectoryLease::new(counted));
        self.directory.get_or_init(new)
    }

    pub(crate) fn add(&self, file: &Arc<OpenFile>) {
        lock(&self.files).list.push(Arc::clone(file));
    }

    pub(crate) fn remove(&self, file: &Arc<OpenFile>) {
        lock(&self.files).list.retain(|it| !Arc::ptr_eq(it, file));
        self.closed();
    }

    /// Keeps an open that no program has any more. Returns false if a kept one has the same access.
    pub(crate) fn keep(&self, file: &Arc<OpenFile>) -> bool {
        let mut files = lock(&self.files);
        let access = |it: &OpenFile| (it.is_readable, it.is_writable);
        let is_new = !files.kept.iter().any(|it| access(it) == access(file));
        if is_new {
            files.list.retain(|it| !Arc::ptr_eq(it, file));
            files.kept.push(Arc::clone(file));
        }
        is_new
    }

    /// Removes a kept open that `suits`.
    pub(crate) fn take_kept(&self, suits: impl Fn(&OpenFile) -> bool) -> Option<Arc<OpenFile>> {
        let mut files = lock(&self.files);
        let at = files.kept.iter().position(|it| suits(it))?;
        Some(files.kept.swap_remove(at))
    }

    /// An open was closed. With the last one the lease ends.
    pub(crate) fn closed(&self) {
        let mut files = lock(&self.files);
        let is_unused = files.list.is_empty() && files.kept.is_empty();
        if is_unused {
            files.watched.clear();
            files.refused = None;
        }
        // The table of held data asks for leases under its lock.
        drop(files);
        if is_unused {
            self.held.set_size(None);
            *lock(&self.created) = None;
        }
    }

    /// The file as the server has reported it last, if an open of this mount has created it.
    pub(crate) fn created(&self) -> Option<Metadata> {
        *lock(&self.created)
    }

    /// Takes note of a file that an open of this mount has created.
    pub(crate) fn has_created(&self, metadata: Metadata) {
        *lock(&self.created) = Some(metadata);
    }

    /// Takes note of the new metadata of a file.
    pub(crate) fn has_changed(&self, metadata: Metadata) {
        if let Some(created) = &mut *lock(&self.created) {
            *created = metadata;
        }
    }

    /// The metadata of a file change in another way: the server must report them again.
    pub(crate) fn forget_created(&self) {
        *lock(&self.created) = None;
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
        let holds = |open: &Arc<OpenFile>| {
            let lease = open.file.lease();
            lease.is_some_and(|lease| lease.state.contains(rights))
        };
        let files = lock(&self.files);
        files.list.iter().chain(&files.kept).any(holds)
    }

    /// Whether a program has the file open, or an open is kept.
    pub(crate) fn has_open(&self) -> bool {
        let files = lock(&self.files);
        !files.list.is_empty() || !files.kept.is_empty()
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
