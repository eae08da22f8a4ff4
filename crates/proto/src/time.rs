//! Time, as the driver passes it into the core.

use core::time::Duration;

use wire::FileTime;

/// A point in time on a monotonic clock: the time since the start of the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(pub Duration);

impl Instant {
    /// Returns the point in time that is `duration` later. Saturates at the largest `Duration`.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }
}

/// The time of a call into the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Now {
    /// Monotonic time of the call, by which the core measures time limits.
    pub instant: Instant,
    /// Wall-clock time, for timestamps in responses.
    pub wall: FileTime,
}
