//! The state of a lease as the client knows it. \[MS-SMB2\] 3.2.1.5
//!
//! Responses to CREATE and breaks can arrive on different channels, and in another order than the
//! server sent them. The epoch of a lease of version 2 counts its state changes, so the client
//! ignores an older grant.
//!
//! Notifications of breaks are not signed, and smbd does not encrypt them either. So a break only
//! takes rights away, of any epoch: a forged one costs the client its cache, and does no other
//! harm.

use wire::create_context::LeaseState;

/// State and epoch of a lease, updated by the responses to CREATE and by breaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeaseRecord {
    /// The caching that the server allows now: read, handle, write. Valid after the first grant.
    pub state: LeaseState,
    /// Number of state changes of the lease modulo 65,536, as the server counts them. 0 before the
    /// first grant, and always with dialects before 3.0.
    pub epoch: u16,
    /// Whether the server granted the lease.
    is_granted: bool,
    /// State after a break that arrived before the first grant.
    early: Option<LeaseState>,
}

impl LeaseRecord {
    /// Applies the lease in a response to CREATE: `epoch` is `None` with dialects before 3.0, and
    /// the last response counts then. `is_breaking`: the response says that a break is in progress,
    /// so `state` has the rights before it. Returns whether the state changed. \[MS-SMB2\]
    /// 3.2.5.7.5
    pub fn grant(&mut self, state: LeaseState, epoch: Option<u16>, is_breaking: bool) -> bool {
        let is_later = epoch.is_none_or(|epoch| is_before(self.epoch, epoch));
        let early = self.early.take();
        if self.is_granted {
            return match epoch {
                Some(epoch) if is_before(epoch, self.epoch) => false,
                // The server had not received the acknowledgment of the break with this epoch: it
                // reports the rights before the break. [MS-SMB2] 3.3.5.9.11
                Some(epoch) if epoch == self.epoch => {
                    self.apply(LeaseState(self.state.0 & state.0), epoch)
                }
                // Without an epoch, only the flag of the response shows that. The notification may
                // still follow.
                None if is_breaking => self.apply(LeaseState(self.state.0 & state.0), 0),
                epoch => self.apply(state, epoch.unwrap_or(0)),
            };
        }
        self.is_granted = true;
        match (early, epoch) {
            // The break overtook the response.
            (Some(broken), None) => self.apply(LeaseState(state.0 & broken.0), 0),
            (Some(broken), Some(_)) if !is_later => {
                self.apply(LeaseState(state.0 & broken.0), self.epoch)
            }
            _ => self.apply(state, epoch.unwrap_or(0)),
        };
        true
    }

    /// Applies a break to the state `state`. A break that was sent twice, or overtaken, takes
    /// nothing more away. Returns whether the state changed. \[MS-SMB2\] 3.2.5.19.2
    pub fn break_to(&mut self, state: LeaseState, epoch: u16) -> bool {
        let epoch = match is_before(self.epoch, epoch) {
            true => epoch,
            false => self.epoch,
        };
        if !self.is_granted {
            self.early = Some(state);
            self.epoch = epoch;
            return false;
        }
        self.apply(LeaseState(self.state.0 & state.0), epoch)
    }

    fn apply(&mut self, state: LeaseState, epoch: u16) -> bool {
        let has_changed = self.state != state;
        self.state = state;
        self.epoch = epoch;
        has_changed
    }

    /// Returns whether the server granted the lease.
    pub fn is_granted(&self) -> bool {
        self.is_granted
    }
}

/// Whether an epoch precedes another one, modulo 65,536.
fn is_before(epoch: u16, other: u16) -> bool {
    epoch != other && other.wrapping_sub(epoch) < 0x8000
}

#[cfg(test)]
mod tests {
    use super::*;

    const R: LeaseState = LeaseState::READ_CACHING;
    const RH: LeaseState = LeaseState(3);
    const RWH: LeaseState = LeaseState(7);

    #[test]
    fn a_response_that_a_break_overtook_grants_what_the_break_left() {
        let mut lease = LeaseRecord::default();
        assert!(!lease.break_to(RH, 2) && !lease.is_granted());
        assert!(lease.grant(RWH, Some(1), false) && lease.is_granted());
        assert_eq!((lease.state, lease.epoch), (RH, 2));
        assert!(!lease.grant(RH, Some(2), false), "the same state");
        assert!(lease.grant(RWH, Some(3), false), "an upgrade");
        assert_eq!((lease.state, lease.epoch), (RWH, 3));
        assert!(!lease.grant(RH, Some(2), false), "an old response");
    }

    #[test]
    fn a_break_only_takes_rights_away() {
        let mut lease = LeaseRecord::default();
        lease.grant(RWH, Some(5), false);
        assert!(lease.break_to(RH, 6));
        assert!(lease.break_to(R, 7));
        assert!(!lease.break_to(RH, 6), "it arrived twice");
        assert_eq!((lease.state, lease.epoch), (R, 7));
        // Forged: an upgrade, and an epoch that hides the next break.
        assert!(!lease.break_to(RWH, 0x7000));
        assert!(lease.break_to(LeaseState::NONE, 8));
        assert_eq!(lease.state, LeaseState::NONE);
        let mut fresh = LeaseRecord::default();
        fresh.break_to(RWH, 1);
        assert!(!fresh.is_granted());
    }

    #[test]
    fn a_response_during_a_break_gives_nothing_back() {
        let mut lease = LeaseRecord::default();
        lease.grant(RH, Some(4), false);
        assert!(lease.break_to(LeaseState::NONE, 5));
        assert!(
            !lease.grant(RH, Some(5), false),
            "the break is not acknowledged yet"
        );
        assert_eq!(lease.state, LeaseState::NONE);
        assert!(lease.grant(RH, Some(6), false), "a later grant");
    }

    #[test]
    fn epochs_wrap() {
        let mut lease = LeaseRecord::default();
        lease.grant(RWH, Some(u16::MAX), false);
        assert!(lease.break_to(R, 0) && lease.grant(RH, Some(1), false));
        assert!(!lease.grant(RWH, Some(u16::MAX), false));
        assert_eq!((lease.state, lease.epoch), (RH, 1));
    }

    #[test]
    fn without_epochs_the_last_message_counts() {
        let mut lease = LeaseRecord::default();
        assert!(
            lease.grant(RWH, None, false) && lease.break_to(R, 0) && lease.grant(RH, None, false)
        );
        assert_eq!(lease.state, RH);
        assert!(lease.is_granted());
    }

    #[test]
    fn without_epochs_the_flag_of_a_response_tells_a_break() {
        let mut lease = LeaseRecord::default();
        lease.grant(RWH, None, false);
        assert!(lease.break_to(R, 0));
        let is_changed = lease.grant(RWH, None, true);
        assert!(!is_changed, "the break is not acknowledged yet");
        assert_eq!(lease.state, R);
        assert!(lease.grant(RH, None, false), "a later grant");
        assert!(!lease.grant(RH, None, true), "the notification follows");
        assert!(lease.break_to(LeaseState::NONE, 0));
    }
}
