//! Locks of this process.

use std::sync::Mutex;

/// Locks a mutex even if a thread panicked while it held the lock. Counters and lists remain valid.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
