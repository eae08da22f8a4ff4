//! The SMB core against a simulated network, disk and clock, from one seed.
//!
//! [`run`] has scripted clients use one server while faults occur, and checks what they observe:
//! each request gets one final response; credits are never overdrawn and never run out; opens
//! coexist only if their share modes permit it; locks exclude each other, reads and writes; reads
//! return written data; RDMA accesses only the memory that a request names; requests with invalid
//! memory change nothing; responses are signed and encrypted as required, with unique nonces; no
//! client sees data of another user; no client caches what another writes, and no cache returns
//! data older than completed writes. With the SMB3 POSIX extensions, names lead to the files that
//! have them, also after renames over open files and after deletions of open files, and a lock is
//! only refused because of another. At the end the faults stop, and everything must finish with
//! nothing left open.
//!
//! [`session::run`] has the client's core, with several channels, use the server's core, and checks
//! their common promises.
//!
//! [`smbd`] connects both ends of SMB Direct over a simulated queue pair, and searches every order
//! of events with small numbers of credits.
//!
//! [`store::run`] crashes the store of the server.
//!
//! The clock and all decisions follow from the seed, and there are no threads: a run that failed
//! fails again.
#![forbid(unsafe_code)]

mod adapter;
mod backpressure;
mod check;
mod choices;
mod client;
mod disk;
pub mod fuzz;
mod host;
mod login;
mod misbehavior;
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
pub use misbehavior::Misbehavior;
pub use scenario::{Faults, Protection, Scenario};

use check::Check;
use world::World;

/// Counts of the events in one simulation, from [`run`]. A test checks with them that the rare
/// events occurred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Number of simulated events, such as the arrival of a frame or the end of a disk operation.
    pub steps: u64,
    /// Number of connections that clients opened in the simulation.
    pub connections: u64,
    /// Number of requests that clients sent.
    pub requests: u64,
    /// Number of final responses that clients received.
    pub answers: u64,
    /// Number of interim responses (STATUS_PENDING) that clients received.
    pub interims: u64,
    /// Number of successful server-side copies (FSCTL_SRV_COPYCHUNK).
    pub copies: u64,
    /// Number of cells that clients read. A cell is a piece of a file that the simulation writes as
    /// a whole.
    pub cells_read: u64,
    /// Number of reads of a cell (a piece of a file) that the simulation compared with the writes.
    pub reads_checked: usize,
    /// Number of READs and WRITEs that moved their data by RDMA.
    pub remote: u64,
    /// Number of READs and WRITEs that named invalid memory, and that the server refused.
    pub refused: u64,
    /// Number of byte-range locks that the server granted.
    pub locks: u64,
    /// Number of locks that were granted to a waiting request.
    pub locks_waited_for: u64,
    /// Number of canceled requests for a lock.
    pub locks_cancelled: u64,
    /// Number of requests for a lock that ended because their open was closed.
    pub locks_ended: u64,
    /// Number of responses that granted caching rights.
    pub grants: u64,
    /// Number of break notifications of oplocks and leases that clients received.
    pub breaks: u64,
    /// Number of acknowledgments of breaks that the server accepted.
    pub acknowledgments: u64,
    /// Number of breaks that ended with the time limit of the server.
    pub unacknowledged: u64,
    /// Number of cells that clients read from their caches.
    pub cached_reads: u64,
    /// Number of listings of directories that clients used from their caches.
    pub cached_listings: u64,
    /// Number of writes that clients delayed under write caching.
    pub delayed_writes: u64,
    /// Number of opens that clients used again under handle caching.
    pub reused_opens: u64,
    /// Number of opens that outlived their session, with their share modes and locks.
    pub opens_disconnected: u64,
    /// Number of opens of a lost session to which their client reconnected.
    pub opens_reclaimed: u64,
    /// Number of opens with the SMB3 POSIX extensions.
    pub posix_opens: u64,
    /// Number of renames through such opens.
    pub posix_renames: u64,
    /// Number of byte-range locks that the server granted to such opens.
    pub posix_locks: u64,
    /// Number of such opens of a lost session to which their client reconnected.
    pub posix_opens_reclaimed: u64,
    /// Number of cells that clients read from files without a name.
    pub nameless_reads: u64,
    /// Number of names in responses that were compared with the creates, renames and deletions.
    pub names_checked: u64,
    /// Number of names that certainly went with the close of the open that deleted them.
    pub names_removed: u64,
    /// Number of refused locks of POSIX opens for which a reason was searched.
    pub refusals_checked: u64,
    /// Number of timeouts of the server while no connection existed.
    pub timeouts_without_connection: u64,
    /// Number of times that a client stopped to receive for some time.
    pub withheld: u64,
    /// Number of frames that waited because the connection had too much memory in responses.
    pub paused: u64,
    /// Number of responses that clients received while a frame of another connection waited.
    pub answers_beside_paused: u64,
    /// Number of connections that the server ended.
    pub violations: u64,
    /// Reason for which the server ended a connection last; `None` if it ended none.
    pub last_violation: Option<Violation>,
}

/// A failed check of a simulation, and the numbers that reproduce it.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The seed of the simulation. The same seed and scenario fail in the same way.
    pub seed: u64,
    /// Number of simulated events before the failure.
    pub step: u64,
    /// Description of the failed check.
    pub what: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, step, what } = self;
        write!(f, "seed {seed}, step {step}: {what}")
    }
}

impl std::error::Error for Failure {}

/// Runs the simulation of a scenario with the decisions of `seed`: clients use one server while
/// faults occur. Returns the counts of the events.
///
/// # Errors
/// Fails if a check fails. The same seed and scenario fail in the same way.
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
