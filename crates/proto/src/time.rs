//! Time, as the driver passes it into the core.

use core::time::Duration;

use wire::FileTime;

/// A point in time on the I/O driver's monotonic clock: the time since the start of the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(pub Duration);

impl Instant {
    /// Returns the point in time that is `duration` after this one. Saturates at the largest
    /// `Duration`.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }

    /// Returns the time from `earlier` to this point in time; zero if `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

/// The time of a call into the protocol core, which has no clock: the I/O driver passes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Now {
    /// Monotonic time of the call, for time limits.
    pub instant: Instant,
    /// Wall-clock time of the call, for timestamps in responses.
    pub wall: FileTime,
}
