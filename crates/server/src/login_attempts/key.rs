//! The keys of the counters of failed logins, and the delays that belong to them.

use std::time::Duration;

use crate::client_address::{ClientAddress, ClientPrefix};

/// Delay of the first login that is not free. It doubles after each `FAILURES_PER_STEP` failures.
const FIRST_DELAY: Duration = Duration::from_millis(250);
/// Number of failed logins between two steps of the delay.
const FAILURES_PER_STEP: u32 = 4;

/// Identifies an account name, with or without an account: a hash with a random key. It needs less
/// memory than a name, which a client may choose as long as it likes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NameHash(pub(super) u64);

/// The logins that a counter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    /// `None` for every name.
    pub(super) name: Option<NameHash>,
    pub(super) source: Source,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Source {
    Address(ClientAddress),
    Network(ClientPrefix),
    /// Every client.
    Any,
}

impl Key {
    /// Number of failures without a delay. Users mistype passwords, and several users share an
    /// address, a network or an account.
    fn free(self) -> u32 {
        match (self.name, self.source) {
            (_, Source::Any) => 60,
            (None, Source::Network(_)) => 40,
            (None, Source::Address(_)) => 20,
            (Some(_), _) => 10,
        }
    }

    /// Longest delay between two checks. It is shorter for a client with any account: other users
    /// of its address wait as well.
    fn longest_delay(self) -> Duration {
        match (self.name, self.source) {
            (_, Source::Any) => Duration::from_secs(4),
            (Some(_), _) => Duration::from_secs(8),
            (None, _) => Duration::from_secs(1),
        }
    }

    /// Delay until the next check after this number of failures.
    pub(super) fn delay(self, failures: u32) -> Duration {
        let Some(over) = failures.checked_sub(self.free()) else {
            return Duration::ZERO;
        };
        let doubled = FIRST_DELAY.saturating_mul(1 << (over / FAILURES_PER_STEP).min(16));
        doubled.min(self.longest_delay())
    }
}
