//! Pauses between attempts to connect.

use std::time::{Duration, Instant};

/// Pause after the first failed attempt. It doubles with each attempt up to the maximum.
const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(2);

/// The pauses of attempts within a time limit.
#[derive(Debug)]
pub(crate) struct Pauses {
    end: Instant,
    next: Duration,
}

impl Pauses {
    /// The pauses of attempts that begin now, and end after `limit`.
    pub(crate) fn within(limit: Duration) -> Self {
        Self {
            end: Instant::now() + limit,
            next: FIRST,
        }
    }

    /// Time that is left for attempts.
    pub(crate) fn left(&self) -> Duration {
        self.end.saturating_duration_since(Instant::now())
    }

    /// The pause after a failed attempt. `None`: the time is over.
    pub(crate) fn next(&mut self) -> Option<Duration> {
        let left = self.left();
        let pause = self.next.min(left);
        self.next = (self.next * 2).min(LONGEST);
        (!left.is_zero()).then_some(pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_and_stay_within_the_limit() {
        let mut pauses = Pauses::within(Duration::from_secs(3600));
        let seen: Vec<_> = std::iter::from_fn(|| pauses.next()).take(7).collect();
        let millis = [100, 200, 400, 800, 1600, 2000, 2000].map(Duration::from_millis);
        assert_eq!(seen, millis);
        assert_eq!(Pauses::within(Duration::ZERO).next(), None);
        let short = Pauses::within(Duration::from_millis(5)).next();
        assert!(short.is_none_or(|pause| pause <= Duration::from_millis(5)));
    }
}
