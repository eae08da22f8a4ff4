//! Credits and MessageIds, the client's side. \[MS-SMB2\] 3.2.4.1.2, 3.2.4.1.5, 3.2.5.1.4

use wire::MessageId;
use wire::dialect::{Capabilities, Dialect};

use super::violation::Violation;

/// Number of bytes of data that one credit pays for in a READ, WRITE or similar request.
/// \[MS-SMB2\] 3.1.5.2
pub const BYTES_PER_CREDIT: u32 = 65_536;

/// Most credits that are held: what a server can mean. The field of a header has 16 bits, and
/// Samba's client takes no more either.
const HELD_MAX: u32 = u16::MAX as u32;

/// The credits that the server has granted.
#[derive(Debug)]
pub(super) struct Credits {
    /// The next MessageId.
    next: u64,
    /// Credits that are available.
    free: u32,
    /// Credits of requests without a final or interim response: the response returns them.
    spent: u32,
    /// Wanted count of credits.
    target: u32,
    /// Whether the server has refused to grant the wanted count.
    is_limited: bool,
}

impl Credits {
    /// The credits of a new connection: one. \[MS-SMB2\] 3.2.5.1.4
    pub(super) fn new(target: u16) -> Self {
        Self {
            next: 0,
            free: 1,
            spent: 0,
            target: u32::from(target.max(1)),
            is_limited: false,
        }
    }

    /// Count of available credits.
    pub(super) fn free(&self) -> u32 {
        self.free
    }

    /// Count of credits that are available or that pending requests return.
    pub(super) fn held(&self) -> u32 {
        self.free + self.spent
    }

    /// Whether a pending response will return credits.
    pub(super) fn is_waiting(&self) -> bool {
        self.spent > 0
    }

    /// The next MessageId.
    pub(super) fn next(&self) -> MessageId {
        MessageId(self.next)
    }

    /// Raises the wanted count to at least `charge`.
    pub(super) fn aim_for(&mut self, charge: u32) {
        self.target = self.target.max(charge.min(HELD_MAX));
    }

    /// Notes that the server does not grant the wanted count.
    pub(super) fn limit(&mut self) {
        self.is_limited = true;
    }

    /// Whether an ordinary request may spend `charge` credits. One credit remains for
    /// acknowledgments of breaks and for ECHO, unless no pending response would return more. A
    /// request of several credits may be a compound that waits for such an acknowledgment itself,
    /// so it takes the last credit only from a server that grants no more.
    pub(super) fn allow(&self, charge: u32) -> bool {
        let may_be_last = self.spent == 0 && (charge <= 1 || self.is_limited);
        let left = if may_be_last { 0 } else { 1 };
        self.free >= charge + left
    }

    /// Spends `charge` credits on a message. Returns its id.
    pub(super) fn spend(&mut self, charge: u16) -> MessageId {
        let id = MessageId(self.next);
        let charge = u32::from(charge.max(1));
        assert!(charge <= self.free, "a message does not exceed the credits");
        self.free -= charge;
        self.spent += charge;
        self.next += u64::from(charge);
        id
    }

    /// The CreditRequest of a message after [`Self::spend`]. Windows grants the requested count.
    /// Samba and smbeam grant the charge, plus the requested count beyond one. Both lead to the
    /// target and stay there.
    pub(super) fn wanted(&self, charge: u16) -> u16 {
        let wanted = match self.target.saturating_sub(self.held()) {
            0 => 1,
            missing => u32::from(charge.max(1)) + missing,
        };
        u16::try_from(wanted).unwrap_or(u16::MAX)
    }

    /// The interim or the only response to a message has arrived.
    pub(super) fn settle(&mut self, charge: u16) {
        self.spent -= u32::from(charge.max(1));
    }

    /// Adds the credits that a response grants.
    pub(super) fn grant(&mut self, granted: u16) -> Result<(), Violation> {
        self.free += u32::from(granted);
        if self.held() > HELD_MAX {
            return Err(Violation::LimitReached("credits"));
        }
        Ok(())
    }
}

/// Whether a request may cost more than one credit. \[MS-SMB2\] 3.2.5.2
pub(super) fn has_large_mtu(dialect: Dialect, capabilities: Capabilities) -> bool {
    dialect >= Dialect::SMB_2_1 && capabilities.contains(Capabilities::LARGE_MTU)
}

/// Credits of a request that sends `sent` bytes and requests `asked` bytes. \[MS-SMB2\] 3.1.5.2
pub(super) fn charge(sent: u32, asked: u32) -> u32 {
    sent.max(asked).saturating_sub(1) / BYTES_PER_CREDIT + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_credit_remains_for_an_acknowledgment() {
        let mut credits = Credits::new(8);
        assert!(credits.allow(1), "the first message of a connection");
        credits.free = 4;
        assert!(credits.allow(3));
        assert!(!credits.allow(4), "it may wait for an acknowledgment");
        credits.limit();
        assert!(credits.allow(4), "the server grants no more");
        credits.spend(3);
        assert!(!credits.allow(1), "a response will return credits");
    }
}
