//! Files that stay open for some time after a program has closed them.
//!
//! A lease with handle caching permits that: the server breaks it before another client needs the
//! file closed. Until then the next open of the file needs no message, and the lease protects the
//! pages of the kernel. [MS-FSA] 2.1.5.1.2

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::handles::lock;
use crate::opens::OpenFile;

/// Largest number of kept files of a mount. The oldest is closed.
const FILES_MAX: usize = 1024;
/// Time after which a kept file is closed.
pub(crate) const KEEP: Duration = Duration::from_secs(30);

/// The kept files of a mount, in the order of their closes.
#[derive(Default)]
pub(crate) struct Kept {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    files: VecDeque<(Instant, Arc<OpenFile>)>,
    /// Whether a task closes the files after [`KEEP`].
    has_sweeper: bool,
}

impl Kept {
    /// Adds a file. Returns the file that must be closed for it, and whether the caller must close
    /// the files after their time.
    pub(crate) fn add(&self, file: Arc<OpenFile>) -> (Option<Arc<OpenFile>>, bool) {
        let mut inner = lock(&self.inner);
        inner.files.push_back((Instant::now(), file));
        let oldest = match inner.files.len() > FILES_MAX {
            true => inner.files.pop_front().map(|(_, file)| file),
            false => None,
        };
        let needs_sweeper = !std::mem::replace(&mut inner.has_sweeper, true);
        (oldest, needs_sweeper)
    }

    /// Removes the files that `suit`, and returns them.
    pub(crate) fn take(&self, suits: impl Fn(&OpenFile) -> bool) -> Vec<Arc<OpenFile>> {
        let mut inner = lock(&self.inner);
        let mut taken = Vec::new();
        inner.files.retain(|(_, file)| {
            let suits = suits(file);
            if suits {
                taken.push(Arc::clone(file));
            }
            !suits
        });
        taken
    }

    /// Removes the files with an ended time, and returns them. `None`: no file is kept, and the
    /// caller need not come again.
    pub(crate) fn expired(&self) -> Option<Vec<Arc<OpenFile>>> {
        let mut inner = lock(&self.inner);
        if inner.files.is_empty() {
            inner.has_sweeper = false;
            return None;
        }
        let ended = inner
            .files
            .iter()
            .take_while(|(at, _)| at.elapsed() >= KEEP);
        let count = ended.count();
        Some(inner.files.drain(..count).map(|(_, file)| file).collect())
    }

    pub(crate) fn len(&self) -> usize {
        lock(&self.inner).files.len()
    }
}
