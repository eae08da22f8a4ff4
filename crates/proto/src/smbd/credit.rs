//! Who may send how often. \[MS-SMBD\] 3.1.5.9
//!
//! A credit is granted by a SEND, which needs a credit itself. Two rules keep both sides from
//! waiting for each other forever:
//!
//! - **The last credit** is spent only on a SEND that grants something, so that the peer is able
//!   to answer. \[MS-SMBD\] 3.1.5.1. Where the peer has all the credits that it asked for it gets
//!   one more, for which a receive is always kept in reserve: without that, two sides with one
//!   credit each would both hold theirs back. And it gets two at least, or the only credit of
//!   both would wander to and fro in empty messages without end.
//! - **A peer that runs low** is granted more at once, in an empty message if there is nothing to
//!   say. After data that is half of what it asked for. After an empty message it is less than
//!   what two sides can make each other go on with: each empty message costs its sender one
//!   credit, and must not make the other side send one for just that.

use super::effect::Violation;

/// Most credits that are held: what a field can say.
const HELD_MAX: u32 = u16::MAX as u32;

/// Credits of both directions.
#[derive(Clone, Debug)]
pub(super) struct Credits {
    /// SENDs that we may do: Connection.SendCredits.
    held: u32,
    /// SENDs that the peer may do: Connection.ReceiveCredits.
    granted: u32,
    /// Receives that are posted. At least as many as are granted.
    posted: u32,
    /// Receives that the driver was asked for and has not posted.
    asked: u32,
    /// SENDs that the peer would like to be allowed.
    requested: u32,
    /// As many of them as it can have: Connection.ReceiveCreditTarget.
    target: u32,
    /// SENDs that we allow at most: Connection.ReceiveCreditMax, or less at first.
    max: u32,
    /// The peer runs low as long as it has no more than so many.
    low: Option<u32>,
}

/// What a message carried that came in, beside credits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Load {
    /// Data.
    Data,
    /// Nothing.
    Empty,
}

impl Credits {
    /// Nobody may send anything.
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

    /// Sends that we may do.
    pub(super) fn held(&self) -> u32 {
        self.held
    }

    /// Sends that the peer may do.
    pub(super) fn granted(&self) -> u32 {
        self.granted
    }

    /// Receives that are posted.
    pub(super) fn posted(&self) -> u32 {
        self.posted
    }

    /// Receives that the driver was asked for and has not posted.
    pub(super) fn asked(&self) -> u32 {
        self.asked
    }

    /// Sends that the peer is to be allowed.
    pub(super) fn target(&self) -> u32 {
        self.target
    }

    /// The peer runs low as long as it has no more than so many.
    pub(super) fn low(&self) -> Option<u32> {
        self.low
    }

    /// Asks for the receive of the negotiation.
    pub(super) fn ask_for_first(&mut self) -> u32 {
        assert!(
            self.posted + self.asked == 0,
            "the first receive is asked for once"
        );
        self.asked = 1;
        1
    }

    /// The message of the negotiation came, for which nobody needs a credit.
    pub(super) fn take_first(&mut self) {
        assert!(
            self.posted > 0,
            "what is received has a receive that was posted"
        );
        self.posted -= 1;
    }

    /// The peer says how many it wants; at least one.
    pub(super) fn aim_for(&mut self, requested: u16) {
        self.requested = requested.into();
        self.target = self.requested.min(self.max);
    }

    /// From here on so many SENDs can be allowed, which are no fewer than before.
    pub(super) fn raise_max(&mut self, max: u16) {
        self.max = self.max.max(max.into());
        self.target = self.requested.min(self.max);
    }

    /// How many more receives are to be posted: for what the peer wants, or has where it wants
    /// less by now, and one in reserve.
    pub(super) fn ask(&mut self) -> u32 {
        let wanted = (self.target.max(self.granted) + 1).min(self.max + 1);
        let more = wanted.saturating_sub(self.posted + self.asked);
        self.asked += more;
        more
    }

    /// Receives are posted.
    pub(super) fn add_posted(&mut self, count: u32) {
        assert!(
            count <= self.asked,
            "only receives that were asked for are posted"
        );
        self.asked -= count;
        self.posted += count;
    }

    /// The peer did a SEND.
    pub(super) fn receive(&mut self) -> Result<(), Violation> {
        assert!(
            self.posted > 0,
            "what is received has a receive that was posted"
        );
        self.posted -= 1;
        self.granted = self.granted.checked_sub(1).ok_or(Violation::NoCredit)?;
        Ok(())
    }

    /// Looks, after a message, whether the peer runs low.
    pub(super) fn look(&mut self, load: Load) {
        let half = self.target / 2;
        let low = match load {
            Load::Data => half.max(1).min(self.target - 1),
            Load::Empty => half.min(self.target.saturating_sub(2)),
        };
        if self.granted <= low {
            self.low = self.low.max(Some(low));
        }
    }

    /// The peer grants credits.
    pub(super) fn earn(&mut self, count: u16) -> Result<(), Violation> {
        self.held += u32::from(count);
        if self.held > HELD_MAX {
            return Err(Violation::TooManyCredits(self.held));
        }
        Ok(())
    }

    /// Credits that the next SEND grants.
    fn next_grant(&self) -> u32 {
        let last = if self.held == 1 {
            (self.granted + 1).max(2)
        } else {
            0
        };
        let wanted = self.target.max(last).saturating_sub(self.granted);
        wanted.min(self.posted - self.granted)
    }

    /// Whether a SEND may go out.
    pub(super) fn can_send(&self) -> bool {
        match self.held {
            0 => false,
            1 => self.next_grant() > 0,
            _ => true,
        }
    }

    /// Whether the peer is to get credits even if there is nothing else to say, and there are
    /// some that it wants. Where the driver is about to post more of them than there are by now,
    /// that is waited for, unless the peer has none at all. And the last credit is not spent on
    /// giving the peer a single one: it would come back the same way, and go again.
    pub(super) fn owes(&self) -> bool {
        let ready = self.posted - self.granted;
        let is_worth_it = ready >= self.asked || self.granted == 0;
        let is_lasting = self.held > 1 || self.granted + ready >= 2;
        let is_wanted = self.low.is_some() && self.granted < self.target;
        is_wanted && ready > 0 && is_worth_it && is_lasting
    }

    /// Spends a credit; how many are granted for it.
    pub(super) fn spend(&mut self) -> u16 {
        assert!(self.can_send(), "nothing is sent without a credit");
        let count = self.grant();
        self.held -= 1;
        count
    }

    /// Grants what can be granted.
    pub(super) fn grant(&mut self) -> u16 {
        let count = self.next_grant();
        self.granted += count;
        assert!(self.granted <= self.posted, "a credit stands for a receive");
        self.low = self.low.filter(|low| self.granted <= *low);
        u16::try_from(count).expect("one more than ReceiveCreditMax fits, or less")
    }
}
