//! Protection of handles after a fork.
//!
//! After a fork the child process has the handles but not the threads that serve them, and a lock
//! may be held for good. So a handle stores the identifier of its process. In another process it
//! fails before it takes any lock, and its drop does nothing.

use std::ops::Deref;

use crate::error::Cause;

/// A value that only the process that made it may use.
#[derive(Debug)]
pub(crate) struct Bound<T> {
    process: u32,
    value: Option<T>,
}

impl<T> Bound<T> {
    pub(crate) fn new(value: T) -> Self {
        Self {
            process: std::process::id(),
            value: Some(value),
        }
    }

    /// The value as a child process inherits it.
    #[cfg(test)]
    pub(crate) fn inherited(value: T) -> Self {
        Self {
            process: std::process::id() + 1,
            value: Some(value),
        }
    }

    /// Whether this is the process that made the value.
    pub(crate) fn is_here(&self) -> bool {
        self.process == std::process::id()
    }

    /// Fails in every process except the one that made the value.
    pub(crate) fn check(&self) -> Result<(), Cause> {
        match self.is_here() {
            true => Ok(()),
            false => Err(Cause::Forked),
        }
    }
}

impl<T> Deref for Bound<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.as_ref().expect("there until it is dropped")
    }
}

impl<T> Drop for Bound<T> {
    fn drop(&mut self) {
        if !self.is_here() {
            std::mem::forget(self.value.take());
        }
    }
}
