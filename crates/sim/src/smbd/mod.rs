//! Both ends of SMB Direct's core against each other.
//!
//! [`search`] tries every order of events with small numbers of credits; [`search_peers`] does so
//! with any peer that keeps the rules. [`run`] connects the two ends over a simulated queue pair
//! from one seed, while it is slow, breaks, falls silent, or corrupts data.

mod graph;
mod model;
mod peer;
mod scenario;
pub(crate) mod side;
mod world;

pub use graph::Searched;
pub use model::{Model, search};
pub use peer::{Peers, search_peers};
pub use scenario::{Faults, Scenario};
pub use world::Report;

use crate::Failure;
use crate::choices::Choices;
use world::World;

/// Runs a scenario: all messages arrive once, whole and in order, in spite of the faults, and then
/// no further SEND follows.
///
/// # Errors
/// Fails if a check fails. The same seed and scenario fail in the same way.
pub fn run(seed: u64, scenario: &Scenario) -> Result<Report, Failure> {
    let mut world = World::new(scenario, Choices::from_seed(seed));
    match world.run() {
        Ok(()) => Ok(world.report),
        Err(what) => Err(Failure {
            seed,
            step: world.report.steps,
            what: format!("{what}\n{}", world.describe()),
        }),
    }
}
