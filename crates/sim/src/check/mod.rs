//! What must be true, as far as clients can see it.

pub(crate) mod caching;
pub(crate) mod contents;
pub(crate) mod directories;
pub(crate) mod locks;
pub(crate) mod names;
pub(crate) mod nonces;
pub(crate) mod opens;
pub(crate) mod refused_locks;
pub(crate) mod store;

/// What was found to be wrong.
pub(crate) type Check<T = ()> = Result<T, String>;

/// A claim that must hold.
pub(crate) fn ensure(holds: bool, what: impl FnOnce() -> String) -> Check {
    if holds { Ok(()) } else { Err(what()) }
}
