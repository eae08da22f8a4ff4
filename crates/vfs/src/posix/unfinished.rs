//! New files that do not have their security descriptor yet.
//!
//! A file exists from the system call that creates it, and gets the descriptor that it inherits
//! after that. Until then its mode would decide about opens by other clients, and about new names
//! in a directory. So both wait for the end of the creation: smbtorture smb2.create.mkdir-visible.
//! Creations hold the lock of the name. A lookup that may have found an unfinished file waits for
//! that lock and is done again.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts of the creations that give a file a descriptor.
#[derive(Debug, Default)]
pub(super) struct Unfinished {
    running: AtomicUsize,
    ended: AtomicUsize,
}

/// A creation in progress. The drop ends it.
pub(super) struct Creation<'a>(&'a Unfinished);

impl Unfinished {
    /// Begins a creation, before the file exists.
    pub(super) fn begin(&self) -> Creation<'_> {
        self.running.fetch_add(1, Ordering::SeqCst);
        Creation(self)
    }

    /// Number of creations that have ended.
    pub(super) fn ended(&self) -> usize {
        self.ended.load(Ordering::SeqCst)
    }

    /// Whether a file that was looked up since `ended` was the number of ended creations may have
    /// been unfinished at that time. The metadata of the lookup may then be those of before.
    pub(super) fn overlaps(&self, ended: usize) -> bool {
        self.running.load(Ordering::SeqCst) > 0 || self.ended() != ended
    }
}

impl Drop for Creation<'_> {
    fn drop(&mut self) {
        // In this order: `overlaps` sees one of both.
        self.0.ended.fetch_add(1, Ordering::SeqCst);
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lookups_overlap_with_creations_that_run_or_have_ended_since() {
        let unfinished = Unfinished::default();
        let before = unfinished.ended();
        assert!(!unfinished.overlaps(before));
        let creation = unfinished.begin();
        assert!(unfinished.overlaps(before));
        drop(creation);
        assert!(unfinished.overlaps(before));
        assert!(!unfinished.overlaps(unfinished.ended()));
    }
}
