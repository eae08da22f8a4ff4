//! Credits: the number of SENDs that each peer may post. \[MS-SMBD\] 3.1.5.9
//!
//! A SEND grants credits, and needs a credit itself. Two rules prevent both peers from waiting for
//! each other forever:
//!
//! - **The last credit** is spent only on a SEND that grants credits, so that the peer can answer.
//!   \[MS-SMBD\] 3.1.5.1. If the peer has all the credits that it requested, it gets one more; a
//!   receive for it is always in reserve. Otherwise two peers with one credit each would both hold
//!   theirs back. And the peer gets at least two, or the only credit of both peers would move
//!   between them in empty messages without end.
//! - **A peer that runs low** gets more credits at once, in an empty message if no data waits.
//!   After a SEND with data, the low-water mark is half of its request. After an empty message it
//!   is lower than the point at which two peers could keep each other sending: each empty message
//!   costs its sender one credit, and must not cause an empty message of the other peer by itself.

use super::effect::Violation;

/// Largest number of credits that a field can count.
const HELD_MAX: u32 = u16::MAX as u32;

/// Credits of both directions.
#[derive(Clone, Debug)]
pub(super) struct Credits {
    /// SENDs that this side may post: Connection.SendCredits.
    held: u32,
    /// SENDs that the peer may post: Connection.ReceiveCredits.
    granted: u32,
    /// Number of posted receives. At least `granted`.
    posted: u32,
    /// Number of receives that the driver was asked for and has not posted.
    asked: u32,
    /// Number of credits that the peer requests.
    requested: u32,
    /// Number of credits that the peer should have: Connection.ReceiveCreditTarget.
    target: u32,
    /// Largest number of credits for the peer: Connection.ReceiveCreditMax, or less at first.
    max: u32,
    /// Low-water mark: at or below it the peer is granted more credits.
    low: Option<u32>,
}

/// Kind of a received SEND.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Load {
    /// A SEND with data.
    Data,
    /// An empty SEND.
    Empty,
}

impl Credits {
    /// Credits before the negotiation: neither peer has any.
    pub(super) fn new(max: u16) -> Self {
        Self {
            held: 0,
            granted: 0,
            posted: 0,
            asked: 0,
            requested: 0,
            target: 0,
            max: u32::from(max),
            low: None,
        }
    }

    /// SENDs that this side may post.
    pub(super) fn held(&self) -> u32 {
        self.held
    }

    /// SENDs that the peer may post.
    pub(super) fn granted(&self) -> u32 {
        self.granted
    }

    /// Number of posted receives.
    pub(super) fn posted(&self) -> u32 {
        self.posted
    }

    /// Number of receives that the driver was asked for and has not posted.
    pub(super) fn asked(&self) -> u32 {
        self.asked
    }

    /// Number of credits that the peer should have.
    pub(super) fn target(&self) -> u32 {
        self.target
    }

    /// Low-water mark: at or below it the peer is granted more credits.
    pub(super) fn low(&self) -> Option<u32> {
        self.low
    }

    /// Requests the receive for the negotiation.
    pub(super) fn ask_for_first(&mut self) -> u32 {
        assert!(
            self.posted + self.asked == 0,
            "the first receive is asked for once"
        );
        self.asked = 1;
        1
    }

    /// Counts the peer's message of the negotiation, which needs no credit.
    pub(super) fn take_first(&mut self) {
        assert!(self.posted > 0, "a received SEND has used a posted receive");
        self.posted -= 1;
    }

    /// Records the number of credits that the peer requests; at least one.
    pub(super) fn set_requested(&mut self, requested: u16) {
        self.requested = requested.into();
        self.target = self.requested.min(self.max);
    }

    /// Raises the limit of credits to `max`, which is not lower than before.
    pub(super) fn raise_max(&mut self, max: u16) {
        self.max = self.max.max(max.into());
        self.target = self.requested.min(self.max);
    }

    /// Requests missing receives and returns their number: one for each credit that the peer should
    /// have (or still has, if its request has become smaller), and one in reserve.
    pub(super) fn ask(&mut self) -> u32 {
        let wanted = (self.target.max(self.granted) + 1).min(self.max + 1);
        let more = wanted.saturating_sub(self.posted + self.asked);
        self.asked += more;
        more
    }

    /// Counts posted receives.
    pub(super) fn add_posted(&mut self, count: u32) {
        assert!(
            count <= self.asked,
            "only receives that were asked for are posted"
        );
        self.asked -= count;
        self.posted += count;
    }

    /// Counts a SEND of the peer.
    pub(super) fn receive(&mut self) -> Result<(), Violation> {
        assert!(self.posted > 0, "a received SEND has used a posted receive");
        self.posted -= 1;
        self.granted = self.granted.checked_sub(1).ok_or(Violation::NoCredit)?;
        Ok(())
    }

    /// Sets the low-water mark, after a message of the peer.
    pub(super) fn update_low_water(&mut self, load: Load) {
        let half = self.target / 2;
        let low = match load {
            Load::Data => half.max(1).min(self.target - 1),
            Load::Empty => half.min(self.target.saturating_sub(2)),
        };
        if self.granted <= low {
            self.low = self.low.max(Some(low));
        }
    }

    /// Counts credits that the peer grants.
    pub(super) fn receive_grant(&mut self, count: u16) -> Result<(), Violation> {
        self.held += u32::from(count);
        if self.held > HELD_MAX {
            return Err(Violation::TooManyCredits(self.held));
        }
        Ok(())
    }

    /// Number of credits that the next SEND grants.
    fn next_grant(&self) -> u32 {
        let last = if self.held == 1 {
            (self.granted + 1).max(2)
        } else {
            0
        };
        let wanted = self.target.max(last).saturating_sub(self.granted);
        wanted.min(self.posted - self.granted)
    }

    /// Whether the credits allow a SEND.
    pub(super) fn can_send(&self) -> bool {
        match self.held {
            0 => false,
            1 => self.next_grant() > 0,
            _ => true,
        }
    }

    /// Whether the peer must get credits even if no data waits. It must want them, and receives for
    /// them must be posted. If the driver is about to post more receives than that, the grant waits
    /// for them, unless the peer has no credit at all. And the last own credit is not spent on a
    /// single credit for the peer: that would return the same way, without end.
    pub(super) fn owes(&self) -> bool {
        let ready = self.posted - self.granted;
        let is_worth_it = ready >= self.asked || self.granted == 0;
        let is_lasting = self.held > 1 || self.granted + ready >= 2;
        let is_wanted = self.low.is_some() && self.granted < self.target;
        is_wanted && ready > 0 && is_worth_it && is_lasting
    }

    /// Spends a credit and returns the number of credits that the SEND grants.
    pub(super) fn spend(&mut self) -> u16 {
        assert!(self.can_send(), "nothing is sent without a credit");
        let count = self.grant();
        self.held -= 1;
        count
    }

    /// Grants as many credits as possible and returns their number.
    pub(super) fn grant(&mut self) -> u16 {
        let count = self.next_grant();
        self.granted += count;
        assert!(self.granted <= self.posted, "a credit stands for a receive");
        self.low = self.low.filter(|low| self.granted <= *low);
        u16::try_from(count).expect("one more than ReceiveCreditMax fits, or less")
    }
}
