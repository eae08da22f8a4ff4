//! Values of which each process has its own. After a fork the value of the parent stays as it was:
//! a lock in it may be held for good, and its threads do not exist in the child.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// One value for each process that uses it.
pub(crate) struct PerProcess<T> {
    current: AtomicPtr<Owned<T>>,
}

struct Owned<T> {
    process: u32,
    value: T,
}

// SAFETY: the pointer is to a value that threads share.
unsafe impl<T: Send + Sync> Sync for PerProcess<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Send for PerProcess<T> {}

impl<T> PerProcess<T> {
    pub(crate) const fn new() -> Self {
        Self {
            current: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// The value of this process; `make` makes the first one. The value of a parent process is
    /// leaked, because nothing of it may be touched.
    pub(crate) fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        let process = std::process::id();
        let current = self.current.load(Ordering::Acquire);
        if let Some(value) = Self::of_process(current, process) {
            return value;
        }
        let value = make();
        let fresh = Box::into_raw(Box::new(Owned { process, value }));
        let (from, to) = (Ordering::AcqRel, Ordering::Acquire);
        match self.current.compare_exchange(current, fresh, from, to) {
            // SAFETY: values are never freed while `self` lives.
            Ok(_) => unsafe { &(*fresh).value },
            Err(faster) => {
                // SAFETY: no other thread has seen the value.
                drop(unsafe { Box::from_raw(fresh) });
                Self::of_process(faster, process).expect("another thread of this process made it")
            }
        }
    }

    /// The value of this process, if it has one.
    pub(crate) fn get(&self) -> Option<&T> {
        let current = self.current.load(Ordering::Acquire);
        Self::of_process(current, std::process::id())
    }

    fn of_process<'a>(current: *mut Owned<T>, process: u32) -> Option<&'a T> {
        // SAFETY: the pointer is null, or to a value that is never freed while `self` lives.
        let owned = unsafe { current.as_ref() }?;
        (owned.process == process).then_some(&owned.value)
    }
}

impl<T> Drop for PerProcess<T> {
    fn drop(&mut self) {
        if self.get().is_some() {
            // SAFETY: nothing else has a reference, and this process made the value.
            drop(unsafe { Box::from_raw(*self.current.get_mut()) });
        }
    }
}
