//! What a run is like: how many clients, what they may do, what goes wrong.

use std::time::Duration;

use proto::carrier::Carrier;
use wire::dialect::Dialect;

use crate::adapter::carriers;
use crate::choices::Choices;

/// How a client protects what it sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// Only where the protocol insists.
    Plain,
    /// Every message is signed.
    Signed,
    /// Every message is sealed; signed in dialects that cannot seal.
    Sealed,
}

/// What a run is like.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Accounts that clients log in to.
    pub users: usize,
    /// Connections of each user.
    pub connections_per_user: usize,
    /// Operations of each connection.
    pub operations: u32,
    /// Requests of one client under way, at most.
    pub depth: usize,
    /// What carries the connections of a client is one of these.
    pub transports: Vec<Carrier>,
    /// Dialects to choose from.
    pub dialects: Vec<Dialect>,
    /// Protections to choose from.
    pub protections: Vec<Protection>,
    /// Credits of a connection.
    pub credits: u16,
    /// Whether files are their owner's alone, so that no other user may see their bytes.
    pub private_files: bool,
    /// Out of a thousand opens, how many are of one file, which nobody keeps from others. Of all
    /// that a client does, half as many are locks.
    pub crowd: u16,
    /// How long an open outlives a session that lost its connection. Zero closes it at once.
    pub disconnected_open_timeout: Duration,
    /// What goes wrong, until the last operation has been sent.
    pub faults: Faults,
}

/// What goes wrong. Chances are so many in a thousand.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// A segment takes up to so long.
    pub network_delay: Duration,
    /// A frame is cut, or clings to its neighbour.
    pub segmented: u16,
    /// A connection is reset, for each operation.
    pub reset: u16,
    /// An operation on a file fails with an error of the disk.
    pub disk_error: u16,
    /// An operation on a file cannot be done at once.
    pub slow_disk: u16,
    /// How long it takes then, at most.
    pub disk_delay: Duration,
    /// A read comes back short.
    pub short_read: u16,
    /// Bytes that the disk holds.
    pub space: Option<u64>,
    /// A client does what it must not.
    pub mischief: u16,
    /// An RDMA operation fails, and its connection with it.
    pub remote: u16,
    /// A READ or WRITE that could name memory names some that is not there, or as nobody may.
    pub lies: u16,
}

impl Faults {
    /// What is left of them once everything has to come to an end: what is slow or small, and
    /// nothing that is lost or wrong.
    pub(crate) fn calmed(&self) -> Self {
        Self {
            network_delay: self.network_delay,
            segmented: self.segmented,
            slow_disk: self.slow_disk,
            disk_delay: self.disk_delay,
            space: self.space,
            ..Self::default()
        }
    }

    /// Some of those that happen at all.
    pub(crate) fn some(&self, choices: &mut Choices) -> Self {
        let mut perhaps = |value| perhaps(value, choices);
        Self {
            segmented: perhaps(self.segmented),
            reset: perhaps(self.reset),
            disk_error: perhaps(self.disk_error),
            slow_disk: perhaps(self.slow_disk),
            short_read: perhaps(self.short_read),
            mischief: perhaps(self.mischief),
            remote: perhaps(self.remote),
            lies: perhaps(self.lies),
            ..self.clone()
        }
    }
}

/// A chance in a thousand, or none. Nothing is chosen where there is none anyway.
pub(crate) fn perhaps(chance: u16, choices: &mut Choices) -> u16 {
    match chance > 0 && choices.below(3) > 0 {
        true => chance,
        false => 0,
    }
}

const ALL_DIALECTS: [Dialect; 5] = [
    Dialect::SMB_2_0_2,
    Dialect::SMB_2_1,
    Dialect::SMB_3_0,
    Dialect::SMB_3_0_2,
    Dialect::SMB_3_1_1,
];

const ALL_PROTECTIONS: [Protection; 3] =
    [Protection::Plain, Protection::Signed, Protection::Sealed];

impl Scenario {
    /// Two users, and nothing goes wrong.
    pub fn calm() -> Self {
        Self {
            users: 2,
            connections_per_user: 1,
            operations: 60,
            depth: 4,
            transports: carriers(),
            dialects: ALL_DIALECTS.to_vec(),
            protections: ALL_PROTECTIONS.to_vec(),
            credits: 512,
            private_files: false,
            crowd: 0,
            disconnected_open_timeout: Duration::ZERO,
            faults: Faults::default(),
        }
    }

    /// Everything goes wrong now and then.
    pub fn stormy() -> Self {
        Self {
            users: 3,
            connections_per_user: 2,
            depth: 8,
            faults: Faults {
                network_delay: Duration::from_millis(40),
                segmented: 300,
                reset: 15,
                disk_error: 20,
                slow_disk: 300,
                disk_delay: Duration::from_millis(900),
                short_read: 20,
                space: None,
                mischief: 10,
                remote: 10,
                lies: 100,
            },
            ..Self::calm()
        }
    }

    /// Clients that are in each other's way in one file, while everything goes wrong now and then.
    pub fn crowded() -> Self {
        Self {
            crowd: 800,
            depth: 3,
            ..Self::stormy()
        }
    }

    /// Clients whose opens outlive lost connections, while everything goes wrong now and then.
    pub fn disconnecting(seed: u64) -> Self {
        let mut choices = Choices::from_seed(seed);
        let storm = Self::stormy();
        Self {
            crowd: choices.pick(&[0, 400]),
            disconnected_open_timeout: Duration::from_millis(choices.pick(&[50, 1_000, 5_000])),
            faults: Faults {
                reset: 40,
                ..storm.faults.some(&mut choices)
            },
            ..storm
        }
    }

    /// Any mixture of the two, as a seed says.
    pub fn any(seed: u64) -> Self {
        let mut choices = Choices::from_seed(!seed);
        let storm = Self::stormy();
        let mut faults = storm.faults.some(&mut choices);
        faults.space = choices.per_mille(150).then_some(48 << 10);
        Self {
            users: 1 + choices.index(3),
            connections_per_user: 1 + choices.index(2),
            operations: 30 + choices.below(60) as u32,
            depth: 1 + choices.index(8),
            credits: choices.pick(&[8, 64, 512]),
            private_files: choices.per_mille(300),
            faults,
            ..storm
        }
    }
}
