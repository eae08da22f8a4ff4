//! A child process never touches what its parent opened.
//!
//! After a fork the child has the handles but not the threads that serve them, and every lock is
//! as it was in that moment. So a handle knows its process: in another one it fails before it
//! takes any lock, and dropping it does nothing at all.

use std::ops::Deref;

use crate::error::Cause;

/// Something that is of use in one process only.
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

    /// What a child has that its parent made.
    #[cfg(test)]
    pub(crate) fn inherited(value: T) -> Self {
        Self {
            process: std::process::id() + 1,
            value: Some(value),
        }
    }

    /// Whether this is the process that made it.
    pub(crate) fn is_here(&self) -> bool {
        self.process == std::process::id()
    }

    /// Fails in any process but the one that made it.
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
