//! The parameters of a run: the clients, their operations, and the faults.

use std::time::Duration;

use proto::carrier::Carrier;
use wire::dialect::Dialect;

use crate::adapter::carriers;
use crate::choices::Choices;
use crate::misbehavior::Misbehavior;

/// Protection of the messages of a simulated client: signing and encryption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// Messages are signed only where the protocol requires it, and not encrypted.
    Plain,
    /// The client signs every message.
    Signed,
    /// The client encrypts every message. In dialects without encryption it signs every message
    /// instead.
    Encrypted,
}

/// The parameters of a simulation of clients and one server: numbers, choices and faults.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Number of user accounts. Each user has separate connections.
    pub users: usize,
    /// Number of connections that each user opens.
    pub connections_per_user: usize,
    /// Number of operations that the client of each connection executes.
    pub operations: u32,
    /// Maximum number of requests of one client in flight.
    pub depth: usize,
    /// Transports from which each connection chooses one at random.
    pub transports: Vec<Carrier>,
    /// Dialects from which each connection chooses one at random.
    pub dialects: Vec<Dialect>,
    /// Protections from which each connection chooses one at random.
    pub protections: Vec<Protection>,
    /// Maximum number of credits of a connection.
    pub credits: u16,
    /// Whether only the owner of a file may read it.
    pub private_files: bool,
    /// Number of opens per thousand that open one file, which all clients share. Half this number
    /// of operations per thousand are locks.
    pub crowd: u16,
    /// Time that an open outlives a session that lost its connection. Zero makes no open resilient.
    pub resilient_timeout: Duration,
    /// Number of CREATEs per thousand that request an oplock or a lease. The same number of
    /// operations per thousand use a cache, if the client has one. If it is not 0, the connections
    /// of a user have one ClientGuid and share their leases.
    pub leases: u16,
    /// Whether clients list directories from their caches. Then no directory is renamed or deleted.
    pub listings: bool,
    /// Number of clients per thousand that have the SMB3 POSIX extensions, if the dialect permits
    /// them. If it is not 0, names of files are checked: no directory is renamed or deleted, and no
    /// deletion withdrawn.
    pub posix: u16,
    /// Maximum duration of a request that may wait for the break of another client's caching
    /// rights; `None` for the server's own limit.
    pub answer_limit: Option<Duration>,
    /// Bytes of memory for the responses of all connections.
    pub response_bytes: usize,
    /// The fault of the server itself, to test the checks; `None` for the real server.
    pub misbehavior: Option<Misbehavior>,
    /// The faults that occur until the clients have sent their last operation. After that no fault
    /// occurs.
    pub faults: Faults,
}

/// Faults of a simulation. The numbers without another unit are probabilities per mille.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// Maximum delay of a segment in the simulated network.
    pub network_delay: Duration,
    /// Probability per mille that a frame is split, or that it arrives together with the next one.
    pub segmented: u16,
    /// Probability per mille, for each operation, that the network resets the connection.
    pub reset: u16,
    /// Probability per mille, for each operation, that the client receives nothing for some time.
    pub withheld: u16,
    /// Maximum duration for which a client receives nothing.
    pub withhold_time: Duration,
    /// Probability per mille that an operation on a file fails with a disk error.
    pub disk_error: u16,
    /// Probability per mille that an operation on a file would block, so that it takes longer.
    pub slow_disk: u16,
    /// Maximum duration of an operation on a file that would block.
    pub disk_delay: Duration,
    /// Probability per mille that a read returns fewer bytes than requested.
    pub short_read: u16,
    /// Capacity of the simulated disk in bytes; `None` for no limit.
    pub space: Option<u64>,
    /// Probability per mille that a client sends a message that violates the protocol.
    pub mischief: u16,
    /// Probability per mille that an RDMA operation fails, and its connection with it.
    pub remote: u16,
    /// Probability per mille that a READ or WRITE over RDMA names memory that is not registered, or
    /// an invalid list.
    pub invalid_memory: u16,
    /// Probability per mille that a client acknowledges a break of its caching rights late,
    /// wrongly, twice, on another connection, or never.
    pub bad_acknowledgments: u16,
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
            withheld: perhaps(self.withheld),
            disk_error: perhaps(self.disk_error),
            slow_disk: perhaps(self.slow_disk),
            short_read: perhaps(self.short_read),
            mischief: perhaps(self.mischief),
            remote: perhaps(self.remote),
            invalid_memory: perhaps(self.invalid_memory),
            bad_acknowledgments: perhaps(self.bad_acknowledgments),
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
    /// Returns a scenario with two users and without faults.
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
            resilient_timeout: Duration::ZERO,
            leases: 0,
            listings: false,
            posix: 0,
            answer_limit: None,
            response_bytes: 256 << 20,
            misbehavior: None,
            faults: Faults::default(),
        }
    }

    /// Returns a scenario in which all kinds of faults occur, each with a low probability.
    pub fn stormy() -> Self {
        Self {
            users: 3,
            connections_per_user: 2,
            depth: 8,
            faults: Faults {
                network_delay: Duration::from_millis(40),
                segmented: 300,
                reset: 15,
                withheld: 0,
                withhold_time: Duration::from_secs(3),
                disk_error: 20,
                slow_disk: 300,
                disk_delay: Duration::from_millis(900),
                short_read: 20,
                space: None,
                mischief: 10,
                remote: 10,
                invalid_memory: 100,
                bad_acknowledgments: 0,
            },
            ..Self::calm()
        }
    }

    /// Returns a scenario in which all clients use one file, with locks and all kinds of faults.
    pub fn crowded() -> Self {
        Self {
            crowd: 800,
            depth: 3,
            ..Self::stormy()
        }
    }

    /// Returns a scenario with opens that outlive lost connections and with all kinds of faults.
    /// `seed` chooses the details.
    pub fn disconnecting(seed: u64) -> Self {
        let mut choices = Choices::from_seed(seed);
        let storm = Self::stormy();
        Self {
            crowd: choices.pick(&[0, 400]),
            resilient_timeout: Duration::from_millis(choices.pick(&[50, 1_000, 5_000])),
            faults: Faults {
                reset: 40,
                ..storm.faults.some(&mut choices)
            },
            ..storm
        }
    }

    /// Returns a scenario in which clients stop to receive for some time, with little memory for
    /// responses and with all kinds of faults. `seed` chooses the details.
    pub fn withholding(seed: u64) -> Self {
        let mut choices = Choices::from_seed(seed);
        let storm = Self::stormy();
        Self {
            response_bytes: choices.pick(&[4 << 10, 16 << 10, 256 << 10]),
            faults: Faults {
                withheld: choices.pick(&[60, 200]),
                ..storm.faults.some(&mut choices)
            },
            ..storm
        }
    }

    /// Returns a scenario in which clients cache files under leases and oplocks, without faults:
    /// every break ends soon. `seed` chooses the details.
    pub fn caching(seed: u64) -> Self {
        let mut choices = Choices::from_seed(seed);
        Self {
            users: 2 + choices.index(2),
            connections_per_user: 1 + choices.index(2),
            dialects: vec![choices.pick(&ALL_DIALECTS[1..])],
            leases: 600,
            crowd: choices.pick(&[0, 0, 150]),
            answer_limit: Some(Duration::from_secs(5)),
            ..Self::calm()
        }
    }

    /// Returns a scenario in which clients cache listings of directories under leases, while others
    /// create, rename and delete files there, without faults. `seed` chooses the details.
    pub fn listing(seed: u64) -> Self {
        Self {
            dialects: ALL_DIALECTS[2..].to_vec(),
            listings: true,
            ..Self::caching(seed)
        }
    }

    /// Returns a scenario in which clients cache files under leases and oplocks, and acknowledge
    /// breaks late, wrongly, twice, on another connection or never, with all kinds of faults.
    /// `seed` chooses the details.
    pub fn caching_badly(seed: u64) -> Self {
        let mut choices = Choices::from_seed(seed);
        let storm = Self::stormy();
        Self {
            depth: 1 + choices.index(8),
            answer_limit: None,
            faults: Faults {
                bad_acknowledgments: choices.pick(&[100, 500]),
                ..storm.faults.some(&mut choices)
            },
            ..Self::caching(seed)
        }
    }

    /// Returns a scenario in which most clients have the SMB3 POSIX extensions and others do not,
    /// with opens that outlive lost connections. `seed` chooses the details and the faults.
    pub fn posix(seed: u64) -> Self {
        let mut choices = Choices::from_seed(seed);
        let storm = Self::stormy();
        Self {
            users: 1 + choices.index(2),
            operations: 80,
            depth: 1 + choices.index(5),
            dialects: vec![Dialect::SMB_3_1_1],
            posix: choices.pick(&[600, 800, 1000]),
            crowd: choices.pick(&[0, 0, 300, 700]),
            resilient_timeout: Duration::from_millis(choices.pick(&[0, 1_000, 5_000])),
            faults: Faults {
                reset: choices.pick(&[0, 0, 30]),
                disk_error: choices.pick(&[0, 0, 0, 20]),
                ..storm.faults.some(&mut choices)
            },
            ..storm
        }
    }

    /// Whether directories keep their names.
    pub(crate) fn keeps_directories(&self) -> bool {
        self.listings || self.posix > 0
    }

    /// Returns a random mixture of the other scenarios, which `seed` chooses.
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
