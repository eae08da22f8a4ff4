//! Whether an open survives the loss of its connection. \[MS-SMB2\] 3.3.1.10, 3.3.7.1

use core::time::Duration;

use wire::access::OplockLevel;
use wire::create_context::LeaseState;

/// Whether an open survives the loss of its connection, and how long the server preserves it then.
/// \[MS-SMB2\] 3.3.1.10
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Durability {
    /// The open ends with its session.
    #[default]
    None,
    /// Open.IsDurable: the open survives while its client may cache the handle. A conflicting open
    /// ends it.
    Durable {
        /// Open.DurableOpenTimeout.
        timeout: Duration,
    },
    /// Open.IsResilient: the open survives in any case, and conflicting opens fail.
    Resilient {
        /// Open.ResilientOpenTimeout.
        timeout: Duration,
    },
}

impl Durability {
    /// How long the server preserves the open without a connection; `None` if not at all.
    pub(crate) fn timeout(self) -> Option<Duration> {
        match self {
            Self::None => None,
            Self::Durable { timeout } | Self::Resilient { timeout } => Some(timeout),
        }
    }

    /// Whether the open can survive the loss of its connection.
    pub(crate) fn is_lasting(self) -> bool {
        self != Self::None
    }

    /// Whether an open survives that has these caching rights and, if `has_locks`, byte-range
    /// locks. Locks survive only with WRITE_CACHING, so that no other client has used the file
    /// meanwhile: smbtorture smb2.durable-open.lock-noW-lease.
    pub(crate) fn survives_with(self, rights: LeaseState, has_locks: bool) -> bool {
        match self {
            Self::None => false,
            Self::Resilient { .. } => true,
            Self::Durable { .. } => {
                let has_write = rights.contains(LeaseState::WRITE_CACHING);
                is_enough(rights) && (has_write || !has_locks)
            }
        }
    }
}

/// Whether an open with these caching rights can be durable. \[MS-SMB2\] 3.3.5.9.6, 3.3.5.9.10
pub(crate) fn is_enough(rights: LeaseState) -> bool {
    rights.contains(LeaseState::HANDLE_CACHING)
}

/// Whether a request for this oplock level can result in a durable open.
pub(crate) fn is_enough_level(level: OplockLevel) -> bool {
    matches!(level, OplockLevel::BATCH | OplockLevel::LEASE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_survive_with_write_caching_only() {
        let (read, handle) = (LeaseState::READ_CACHING, LeaseState::HANDLE_CACHING);
        let all = read | handle | LeaseState::WRITE_CACHING;
        let timeout = Duration::from_secs(1);
        let durable = Durability::Durable { timeout };
        let resilient = Durability::Resilient { timeout };
        for (rights, without, with) in [
            (LeaseState::NONE, false, false),
            (read, false, false),
            (read | handle, true, false),
            (all, true, true),
        ] {
            assert_eq!(durable.survives_with(rights, false), without, "{rights:?}");
            assert_eq!(durable.survives_with(rights, true), with, "{rights:?}");
            assert!(resilient.survives_with(rights, true));
            assert!(!Durability::None.survives_with(rights, false));
        }
    }
}
