//! Credits and MessageIds, the client's side. \[MS-SMB2\] 3.2.4.1.2, 3.2.4.1.5, 3.2.5.1.4

use wire::MessageId;
use wire::dialect::{Capabilities, Dialect};

use super::violation::Violation;

/// Bytes that a credit pays for. \[MS-SMB2\] 3.1.5.2
pub const BYTES_PER_CREDIT: u32 = 65_536;

/// Most credits that are held: what a server can mean. The field of a header has 16 bits, and
/// Samba's client takes no more either.
const HELD_MAX: u32 = u16::MAX as u32;

/// What the server lets us send.
#[derive(Debug)]
pub(super) struct Credits {
    /// The next MessageId.
    next: u64,
    /// Credits that can be spent.
    free: u32,
    /// Credits spent on requests that got neither an answer nor an interim one: they come back.
    spent: u32,
    /// How many are asked for.
    target: u32,
}

impl Credits {
    /// Those of a new connection: one. \[MS-SMB2\] 3.2.5.1.4
    pub(super) fn new(target: u16) -> Self {
        Self {
            next: 0,
            free: 1,
            spent: 0,
            target: u32::from(target.max(1)),
        }
    }

    /// Credits that can be spent.
    pub(super) fn free(&self) -> u32 {
        self.free
    }

    /// Credits that can be spent, or were and come back.
    pub(super) fn held(&self) -> u32 {
        self.free + self.spent
    }

    /// Whether answers are on their way that bring credits.
    pub(super) fn is_waiting(&self) -> bool {
        self.spent > 0
    }

    /// The next MessageId.
    pub(super) fn next(&self) -> MessageId {
        MessageId(self.next)
    }

    /// Asks for at least as many from now on.
    pub(super) fn aim_for(&mut self, charge: u32) {
        self.target = self.target.max(charge.min(HELD_MAX));
    }

    /// Whether `charge` credits may go into requests that can wait. One is left for what must not
    /// wait behind them, acknowledgements of breaks and ECHO; unless nothing is on its way that
    /// would bring more.
    pub(super) fn allow(&self, charge: u32) -> bool {
        let left = if self.spent == 0 { 0 } else { 1 };
        self.free >= charge + left
    }

    /// Spends `charge` credits on a message; its id.
    pub(super) fn spend(&mut self, charge: u16) -> MessageId {
        let id = MessageId(self.next);
        let charge = u32::from(charge.max(1));
        assert!(charge <= self.free, "nothing is sent beyond the credits");
        self.free -= charge;
        self.spent += charge;
        self.next += u64::from(charge);
        id
    }

    /// What a message that `spend` was called for asks for. Windows grants what is asked for;
    /// Samba and smbeam what was spent, and what is asked for beyond one. Either way this leads to
    /// the target and stays there.
    pub(super) fn wanted(&self, charge: u16) -> u16 {
        let wanted = match self.target.saturating_sub(self.held()) {
            0 => 1,
            missing => u32::from(charge.max(1)) + missing,
        };
        u16::try_from(wanted).unwrap_or(u16::MAX)
    }

    /// An answer came, an interim one or the only one.
    pub(super) fn settle(&mut self, charge: u16) {
        self.spent -= u32::from(charge.max(1));
    }

    /// Takes what an answer grants.
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

/// Credits for a request that sends and asks for so many bytes. \[MS-SMB2\] 3.1.5.2
pub(super) fn charge(sent: u32, asked: u32) -> u32 {
    sent.max(asked).saturating_sub(1) / BYTES_PER_CREDIT + 1
}
