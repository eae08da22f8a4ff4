//! Number of names that the kernel caches under leases on directories, in the whole mount, and its
//! limit.
//!
//! The mount remembers these names, because it must drop each of them when the lease ends. A name
//! counts until the mount has asked the kernel to drop it.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Largest number of these names in a mount. Each takes about 80 bytes here.
const NAMES_MAX: usize = 1 << 20;

/// The number of names, and its limit.
pub(crate) struct CachedNames {
    count: AtomicUsize,
    max: usize,
}

impl Default for CachedNames {
    fn default() -> Self {
        Self::new(NAMES_MAX)
    }
}

impl CachedNames {
    /// No names, of at most `max`.
    pub(crate) fn new(max: usize) -> Self {
        Self {
            count: AtomicUsize::new(0),
            max,
        }
    }

    /// Number of names.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Whether the limit is reached.
    pub(crate) fn is_full(&self) -> bool {
        self.count() >= self.max
    }

    /// Counts one more name, if the limit permits that.
    pub(crate) fn take(&self) -> bool {
        let take = |count: usize| (count < self.max).then_some(count + 1);
        let order = Ordering::Relaxed;
        self.count.fetch_update(order, order, take).is_ok()
    }

    pub(crate) fn release(&self, count: usize) {
        let before = self.count.fetch_sub(count, Ordering::Relaxed);
        assert!(count <= before, "each name was counted");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_counted_up_to_the_limit() {
        let names = CachedNames::new(2);
        assert!(names.take() && !names.is_full());
        assert!(names.take() && names.is_full());
        assert!(!names.take());
        names.release(1);
        assert!(names.take());
        names.release(2);
        assert_eq!(names.count(), 0);
    }
}
