//! The parameters of a run: the clients, their operations, and the faults.

use std::time::Duration;

use proto::carrier::Carrier;
use wire::dialect::Dialect;

use crate::adapter::carriers;
use crate::choices::Choices;

/// How a client protects its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// Only where the protocol requires it.
    Plain,
    /// Every message is signed.
    Signed,
    /// Every message is encrypted; it is signed in dialects without encryption.
    Encrypted,
}

/// The parameters of a run.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Number of accounts.
    pub users: usize,
    /// Number of connections of each user.
    pub connections_per_user: usize,
    /// Number of operations of each connection.
    pub operations: u32,
    /// Maximum number of requests of one client in flight.
    pub depth: usize,
    /// Transports to choose from.
    pub transports: Vec<Carrier>,
    /// Dialects to choose from.
    pub dialects: Vec<Dialect>,
    /// Protections to choose from.
    pub protections: Vec<Protection>,
    /// Maximum number of credits of a connection.
    pub credits: u16,
    /// Whether only the owner of a file may read it.
    pub private_files: bool,
    /// How many of a thousand opens are of one shared file. Half as many operations of a client are
    /// locks.
    pub crowd: u16,
    /// How long an open outlives a session that lost its connection. Zero closes it at once.
    pub disconnected_open_timeout: Duration,
    /// The faults, until the clients have sent their last operation.
    pub faults: Faults,
}

/// The faults. Probabilities are per mille.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// Maximum delay of a segment.
    pub network_delay: Duration,
    /// A frame is split, or arrives together with the next one.
    pub segmented: u16,
    /// A connection is reset, for each operation.
    pub reset: u16,
    /// An operation on a file fails with a disk error.
    pub disk_error: u16,
    /// An operation on a file would block.
    pub slow_disk: u16,
    /// Maximum duration of such an operation.
    pub disk_delay: Duration,
    /// A read returns fewer bytes than requested.
    pub short_read: u16,
    /// Capacity of the disk in bytes.
    pub space: Option<u64>,
    /// A client violates the protocol.
    pub mischief: u16,
    /// An RDMA operation fails, and its connection with it.
    pub remote: u16,
    /// A READ or WRITE over RDMA names memory that is not registered, or an invalid list.
    pub invalid_memory: u16,
}

impl Faults {
    /// Returns the faults of the final phase, in which everything must finish: delays and a small
    /// disk, but no loss and no error.
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

    /// Returns a random subset of the faults.
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
            invalid_memory: perhaps(self.invalid_memory),
            ..self.clone()
        }
    }
}

/// Returns the probability, or 0. Makes no decision if the probability is 0.
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
    [Protection::Plain, Protection::Signed, Protection::Encrypted];

impl Scenario {
    /// Two users and no faults.
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

    /// All faults occur now and then.
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
                invalid_memory: 100,
            },
            ..Self::calm()
        }
    }

    /// Clients that conflict in one file, with all faults.
    pub fn crowded() -> Self {
        Self {
            crowd: 800,
            depth: 3,
            ..Self::stormy()
        }
    }

    /// Clients with opens that outlive lost connections, with all faults.
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

    /// A random mixture of the other scenarios.
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
