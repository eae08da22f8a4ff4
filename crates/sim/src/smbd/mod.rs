//! SMB Direct's core, both sides, against each other.
//!
//! [`search`] tries every order of events on small numbers of credits; [`search_peers`] does it
//! with a peer that may do whatever the rules allow. [`run`] lets the two sides work on each other
//! over a simulated queue pair from one seed, while it is slow, breaks, falls silent, or spoils
//! what it carries.

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

/// Runs a scenario: all messages arrive once, whole and in order, whatever goes wrong, and then
/// there is silence.
///
/// # Errors
/// When something is not as it must be. The same seed and scenario fail alike.
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
