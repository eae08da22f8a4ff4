//! The tables of open files and open directories, by the numbers that the kernel returns.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fuser::{Errno, FileHandle};

/// Largest number of open files, and of open directories, of a mount.
const HANDLES_MAX: usize = 1 << 20;

/// A table of open objects.
pub(crate) struct Handles<T> {
    inner: Mutex<Inner<T>>,
}

struct Inner<T> {
    objects: HashMap<u64, Arc<T>>,
    next: u64,
}

impl<T> Default for Handles<T> {
    fn default() -> Self {
        let inner = Inner {
            objects: HashMap::new(),
            next: 1,
        };
        Self {
            inner: Mutex::new(inner),
        }
    }
}

impl<T> Handles<T> {
    /// Adds an object and returns its number, which is never used again.
    ///
    /// # Errors
    /// ENFILE: the table is full.
    pub(crate) fn add(&self, object: Arc<T>) -> Result<FileHandle, Errno> {
        let mut inner = lock(&self.inner);
        if inner.objects.len() >= HANDLES_MAX {
            return Err(Errno::ENFILE);
        }
        let number = inner.next;
        inner.next += 1;
        inner.objects.insert(number, object);
        Ok(FileHandle(number))
    }

    /// Returns an object.
    ///
    /// # Errors
    /// EBADF: the table does not have the number.
    pub(crate) fn of(&self, handle: FileHandle) -> Result<Arc<T>, Errno> {
        let inner = lock(&self.inner);
        inner.objects.get(&handle.0).cloned().ok_or(Errno::EBADF)
    }

    /// Removes an object.
    pub(crate) fn remove(&self, handle: FileHandle) -> Option<Arc<T>> {
        lock(&self.inner).objects.remove(&handle.0)
    }

    /// Returns all objects.
    pub(crate) fn all(&self) -> Vec<Arc<T>> {
        lock(&self.inner).objects.values().cloned().collect()
    }

    /// Returns the number of objects.
    pub(crate) fn len(&self) -> usize {
        lock(&self.inner).objects.len()
    }
}

/// Locks a mutex. A panic of another thread does not make its value wrong: each change is complete
/// before the code that can panic.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_used_once() {
        let handles = Handles::default();
        let first = handles.add(Arc::new('a')).expect("added");
        assert_eq!(handles.of(first).as_deref(), Ok(&'a'));
        assert_eq!(handles.remove(first).as_deref(), Some(&'a'));
        assert_eq!(handles.of(first), Err(Errno::EBADF));
        assert_ne!(handles.add(Arc::new('b')).expect("added"), first);
        assert_eq!(handles.len(), 1);
    }
}
