//! Sessions: the client's core with several channels against the server's core, over a network
//! that loses channels, delivers late and keeps answers back, while the server restarts.
//!
//! What the scripted `Client` cannot show is what the two cores promise together:
//! a request of a lost channel is sent again or given up on, and whatever its caller was told is
//! so. An append and a rename happen once at most, and not at all if they are said to have failed;
//! a lock is held from the answer to its LOCK to its UNLOCK; no write of before shows up after one
//! that came later. Both ends of a connection learn of its end by themselves: the server may still
//! receive, and do, what the client has long sent again elsewhere.
//!
//! A `peer` drives the client's core as crates/client does, a `script` says what it asks for,
//! the `books` say what must be so.

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
use wire::dialect::Dialect;

use crate::adapter::{TRANSPORTS, mixable};
use crate::choices::Choices;
use crate::scenario::{Faults, perhaps};
use crate::{Failure, check::Check};
use world::World;

/// What a run of sessions is like.
#[derive(Clone, Debug)]
pub struct Sessions {
    /// Sessions at the same time, all of one user.
    pub sessions: usize,
    /// Channels of each, at most; one where the dialect allows no more.
    pub channels: usize,
    /// Operations of each.
    pub operations: u32,
    /// Requests of one session under way, at most.
    pub depth: usize,
    /// Dialects to choose from.
    pub dialects: Vec<Dialect>,
    /// Credits that a client asks for.
    pub credits: u16,
    /// What goes wrong with bytes and with the disk. A `reset` here cuts one channel.
    pub faults: Faults,
    /// Out of a thousand frames, how many are held back for long.
    pub held: u16,
    /// How long, at most.
    pub hold: Duration,
    /// Out of a thousand operations, with how many the server restarts.
    pub restart: u16,
    /// What carries each connection is one of these.
    pub transports: Vec<Carrier>,
}

/// What a run of sessions came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Events.
    pub steps: u64,
    /// Connections.
    pub connections: u64,
    /// Logins that began a session.
    pub sessions: u64,
    /// Connections that joined a session.
    pub bindings: u64,
    /// Connections that were cut.
    pub cuts: u64,
    /// Restarts of the server.
    pub restarts: u64,
    /// Requests.
    pub requests: u64,
    /// Requests that were answered.
    pub answers: u64,
    /// Requests that were sent again on another channel.
    pub resent: u64,
    /// Requests that were given up on.
    pub given_up: u64,
    /// Requests that timed out.
    pub timed_out: u64,
    /// Reads of a cell that were compared with the writes.
    pub reads_checked: usize,
    /// Records that were appended for certain.
    pub appends: usize,
    /// Names that were looked for at the end.
    pub names: usize,
    /// Locks and unlocks that were answered.
    pub locks: u64,
    /// READs and WRITEs whose memory was named.
    pub named: u64,
}

impl Sessions {
    /// Two sessions, and nothing goes wrong.
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
            transports: mixable(),
        }
    }

    /// Everything goes wrong now and then.
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
                lies: 0,
            },
            held: 3,
            hold: Duration::from_secs(40),
            restart: 1,
            ..Self::calm()
        }
    }

    /// Any mixture of the two, as a seed says.
    pub fn any(seed: u64) -> Self {
        let mut choices = Choices::from_seed(!seed);
        let storm = Self::stormy();
        let faults = storm.faults.some(&mut choices);
        let held = perhaps(storm.held, &mut choices);
        let restart = perhaps(storm.restart, &mut choices);
        // Each alone, or what may be together.
        let transports = match choices.index(2 * TRANSPORTS.len()) {
            index if index < TRANSPORTS.len() => vec![TRANSPORTS[index].1],
            _ => mixable(),
        };
        let mut dialects = storm.dialects.clone();
        if choices.per_mille(150) {
            dialects = vec![Dialect::SMB_2_0_2, Dialect::SMB_2_1];
        }
        Self {
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

/// Runs sessions.
///
/// # Errors
/// When something is not as it must be. The same seed and scenario fail alike.
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
