//! Sessions: the client's core with several channels against the server's core, over a network that
//! loses channels and delays frames and responses, while the server restarts.
//!
//! The scripted `Client` cannot show the common promises of the two cores: a request of a lost
//! channel is resent or canceled, and every response that the caller received is true. An append
//! and a rename happen at most once, and not at all if they failed; a lock is held from the
//! response to its LOCK to its UNLOCK; no earlier write overwrites a later one. Both ends learn of
//! the end of a connection separately: the server may still receive and execute requests that the
//! client has already resent on another channel.
//!
//! A `peer` drives the client's core as crates/client does, a `script` chooses its requests, and
//! the `books` contain the expected state.

mod act;
mod answers;
mod appends;
mod audit;
mod books;
mod names;
mod peer;
mod script;
mod world;

use std::time::Duration;

use proto::carrier::Carrier;
use proto::server::GmacChannels;
use wire::dialect::Dialect;

use crate::adapter::{TRANSPORTS, mixable};
use crate::choices::Choices;
use crate::scenario::{Faults, perhaps};
use crate::{Failure, check::Check};
use world::World;

/// The parameters of a simulation of sessions with several channels and one server.
#[derive(Clone, Debug)]
pub struct Sessions {
    /// Number of concurrent sessions, all of one user.
    pub sessions: usize,
    /// Maximum number of channels of each session; one if the dialect permits no more.
    pub channels: usize,
    /// Number of operations that the client of each session executes.
    pub operations: u32,
    /// Maximum number of requests of one session in flight.
    pub depth: usize,
    /// Dialects from which each session chooses one at random.
    pub dialects: Vec<Dialect>,
    /// Number of credits that a client requests.
    pub credits: u16,
    /// Faults of the network and of the disk. A `reset` cuts one channel.
    pub faults: Faults,
    /// Number of frames per thousand that the network delays for a long time.
    pub held: u16,
    /// Maximum delay of a frame that the network delays for a long time.
    pub hold: Duration,
    /// Number of operations per thousand during which the server restarts.
    pub restart: u16,
    /// Number of operations per thousand at which the account of the sessions is disabled for a
    /// short time.
    pub disable: u16,
    /// Number of operations per thousand at which an administrator ends a session.
    pub end: u16,
    /// Transports from which each connection chooses one at random.
    pub transports: Vec<Carrier>,
    /// The server's protection of sessions of several channels.
    pub gmac_channels: GmacChannels,
}

/// Counts of the events in one simulation of sessions. A test checks with them that the rare events
/// occurred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Number of simulated events, such as the arrival of a frame or the end of a disk operation.
    pub steps: u64,
    /// Number of connections that clients opened in the simulation.
    pub connections: u64,
    /// Number of logins that started a session.
    pub sessions: u64,
    /// Number of connections that joined a session.
    pub bindings: u64,
    /// Number of connections that the simulated network cut.
    pub cuts: u64,
    /// Number of restarts of the simulated server.
    pub restarts: u64,
    /// Number of times that the account was disabled.
    pub disabled: u64,
    /// Number of sessions that ended because the account was disabled.
    pub ended_by_disabling: u64,
    /// Number of sessions that an administrator ended.
    pub ended_by_administrator: u64,
    /// Number of logins that the server refused because the account was disabled meanwhile.
    pub outdated_logins: u64,
    /// Number of requests that clients sent.
    pub requests: u64,
    /// Number of requests for which the client received a response.
    pub answers: u64,
    /// Number of requests that were resent on another channel.
    pub resent: u64,
    /// Number of requests that the client canceled.
    pub given_up: u64,
    /// Number of requests that failed because their time limit passed.
    pub timed_out: u64,
    /// Number of reads of a cell that were compared with the writes.
    pub reads_checked: usize,
    /// Number of records that were certainly appended.
    pub appends: usize,
    /// Number of names that the audit searched for.
    pub names: usize,
    /// Number of LOCK and UNLOCK operations that succeeded.
    pub locks: u64,
    /// Number of READs and WRITEs that named registered memory for RDMA.
    pub named: u64,
}

impl Sessions {
    /// Returns the parameters of two sessions without faults.
    pub fn calm() -> Self {
        Self {
            sessions: 2,
            channels: 4,
            operations: 120,
            depth: 8,
            dialects: vec![Dialect::SMB_3_0, Dialect::SMB_3_0_2, Dialect::SMB_3_1_1],
            credits: 64,
            faults: Faults::default(),
            held: 0,
            hold: Duration::ZERO,
            restart: 0,
            disable: 0,
            end: 0,
            transports: mixable(),
            gmac_channels: GmacChannels::Encrypt,
        }
    }

    /// Returns parameters with which all kinds of faults occur, each with a low probability.
    pub fn stormy() -> Self {
        Self {
            faults: Faults {
                network_delay: Duration::from_millis(40),
                segmented: 200,
                reset: 25,
                disk_error: 5,
                slow_disk: 300,
                disk_delay: Duration::from_millis(900),
                short_read: 0,
                space: None,
                mischief: 0,
                remote: 10,
                invalid_memory: 0,
                bad_acknowledgments: 0,
                withheld: 0,
                withhold_time: Duration::ZERO,
            },
            held: 3,
            hold: Duration::from_secs(40),
            restart: 1,
            ..Self::calm()
        }
    }

    /// Returns a random mixture of the other parameters, which `seed` chooses.
    pub fn any(seed: u64) -> Self {
        let mut choices = Choices::from_seed(!seed);
        let storm = Self::stormy();
        let faults = storm.faults.some(&mut choices);
        let held = perhaps(storm.held, &mut choices);
        let restart = perhaps(storm.restart, &mut choices);
        // A single transport, or transports that one session may combine.
        let transports = match choices.index(2 * TRANSPORTS.len()) {
            index if index < TRANSPORTS.len() => vec![TRANSPORTS[index].1],
            _ => mixable(),
        };
        let mut dialects = storm.dialects.clone();
        if choices.per_mille(150) {
            dialects = vec![Dialect::SMB_2_0_2, Dialect::SMB_2_1];
        }
        let gmac_channels = choices.pick(&[
            GmacChannels::Encrypt,
            GmacChannels::Cmac,
            GmacChannels::Single,
            GmacChannels::Allow,
        ]);
        Self {
            gmac_channels,
            sessions: 1 + choices.index(3),
            channels: 1 + choices.index(4),
            operations: 60 + choices.below(120) as u32,
            depth: 1 + choices.index(12),
            credits: choices.pick(&[8, 64, 512]),
            dialects,
            faults,
            held,
            restart,
            transports,
            ..storm
        }
    }
}

/// Runs the simulation of sessions with the decisions of `seed`. Returns the counts of the events.
///
/// # Errors
/// Fails if a check fails. The same seed and scenario fail in the same way.
pub fn run(seed: u64, scenario: &Sessions) -> Result<Outcome, Failure> {
    let mut world = World::new(scenario, Choices::from_seed(seed));
    let result: Check = world.run().and_then(|()| world.audit());
    match result {
        Ok(()) => Ok(world.outcome()),
        Err(what) => Err(Failure {
            seed,
            step: world.outcome().steps,
            what: format!("{what}\n{}", world.describe()),
        }),
    }
}
