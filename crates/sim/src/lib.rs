//! The SMB core against a simulated network, disk and clock, from one seed.
//!
//! [`run`] lets scripted clients work on one server while things go wrong, and checks what they
//! see: each request gets one final answer; credits are never overdrawn and never run out; opens
//! exist together only if their share modes allow it; locks exclude each other, and reads and
//! writes, as they say; reads see what was written; by RDMA nothing is touched but the memory that
//! a request names, and what names no such memory changes nothing; answers are
//! signed and sealed as they must be, under nonces that come once; nobody sees what is not theirs.
//! At the end nothing goes wrong any more and everything has to finish, with nothing left open.
//!
//! [`session::run`] lets the client's core, with several channels, work on the server's core, and
//! checks what the two promise together.
//!
//! [`smbd`] has both sides of SMB Direct work on each other over a simulated queue pair, and goes
//! through every order of events on small numbers of credits.
//!
//! There is no clock, thread or random number here but those that follow from the seed: a run
//! that failed fails again.
#![forbid(unsafe_code)]

mod adapter;
mod check;
mod choices;
mod client;
mod disk;
pub mod fuzz;
mod host;
mod login;
mod network;
mod scenario;
mod schedule;
pub mod seeds;
mod server_host;
pub mod session;
pub mod smbd;
pub mod store;
mod world;

use std::fmt;

use proto::violation::Violation;

pub use adapter::TRANSPORTS;
pub use choices::Choices;
pub use scenario::{Faults, Protection, Scenario};

use check::Check;
use world::World;

/// What a run came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Events.
    pub steps: u64,
    /// Connections.
    pub connections: u64,
    /// Requests.
    pub requests: u64,
    /// Final answers.
    pub answers: u64,
    /// Interim answers.
    pub interims: u64,
    /// Copies on the server that succeeded.
    pub copies: u64,
    /// Cells that were read.
    pub cells_read: u64,
    /// Reads of a cell that were compared with the writes.
    pub reads_checked: usize,
    /// READs and WRITEs that moved their data by RDMA.
    pub remote: u64,
    /// READs and WRITEs that named memory as nobody may, and were refused.
    pub refused: u64,
    /// Locks that were granted.
    pub locks: u64,
    /// Locks that were granted to who waited.
    pub locks_waited_for: u64,
    /// Requests for a lock that were given up on.
    pub locks_cancelled: u64,
    /// Requests for a lock whose open was closed.
    pub locks_ended: u64,
    /// Opens that outlived their session, and so did their share modes and locks.
    pub opens_disconnected: u64,
    /// Timeouts of the server while no connection existed.
    pub timeouts_without_connection: u64,
    /// Connections that the server ended.
    pub violations: u64,
    /// Why it ended the last of them.
    pub last_violation: Option<Violation>,
}

/// What went wrong, and how to see it again.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The seed.
    pub seed: u64,
    /// After how many events.
    pub step: u64,
    /// What.
    pub what: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, step, what } = self;
        write!(f, "seed {seed}, step {step}: {what}")
    }
}

impl std::error::Error for Failure {}

/// Runs a scenario.
///
/// # Errors
/// When something is not as it must be. The same seed and scenario fail alike.
pub fn run(seed: u64, scenario: &Scenario) -> Result<Report, Failure> {
    let mut world = World::new(scenario, Choices::from_seed(seed));
    world.populate();
    let result = world.run().and_then(|()| world.audit());
    conclude(seed, &world, result)
}

fn conclude(seed: u64, world: &World, result: Check) -> Result<Report, Failure> {
    match result {
        Ok(()) => Ok(world.report),
        Err(what) => {
            let last = world.report.last_violation;
            let state = world.describe();
            Err(Failure {
                seed,
                step: world.report.steps,
                what: format!("{what}\nlast connection ended for {last:?}\n{state}"),
            })
        }
    }
}
