//! New files that do not have their security descriptor yet.
//!
//! A file exists from the system call that creates it, and gets the descriptor that it inherits
//! after that. Until then its mode would decide about opens by other clients. So an open waits for
//! the end of the creation: smbtorture smb2.create.mkdir-visible. Creations hold the lock of the
//! name; opens wait for it while this counter is not 0.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Number of creations in progress that give the file a descriptor.
#[derive(Debug, Default)]
pub(super) struct Unfinished(AtomicUsize);

/// A creation in progress. The drop ends it.
pub(super) struct Creation<'a>(&'a Unfinished);

impl Unfinished {
    /// Begins a creation, before the file exists.
    pub(super) fn begin(&self) -> Creation<'_> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Creation(self)
    }

    /// Whether any creation is in progress.
    pub(super) fn is_any(&self) -> bool {
        self.0.load(Ordering::SeqCst) > 0
    }
}

impl Drop for Creation<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}
