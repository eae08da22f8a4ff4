//! How long a driver may sleep in one turn.

use std::time::Duration;

/// How long a turn of the loop may sleep in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Not at all: a task is ready.
    No,
    /// Until this much time has passed or an event arrives.
    For(Duration),
    /// Until an event arrives.
    Forever,
}
