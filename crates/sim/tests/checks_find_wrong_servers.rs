//! Each check of client caching finds a server that is wrong in this respect. Otherwise the other
//! tests prove nothing.

use smbeam_sim::{Misbehavior, Scenario};

/// Maximum number of seeds until a check finds the fault. Most find it in a few; names that change
/// in spite of a cached handle are rare.
const SEEDS: u64 = 3000;

/// Checks that a check fails for a wrong server, with this description.
fn find(misbehavior: Misbehavior, scenario: impl Fn(u64) -> Scenario, description: &str) {
    let mut others = Vec::new();
    for seed in 0..SEEDS {
        let scenario = Scenario {
            misbehavior: Some(misbehavior),
            ..scenario(seed)
        };
        match smbeam_sim::run(seed, &scenario) {
            Err(failure) if failure.what.contains(description) => {
                println!("{misbehavior:?}: found with seed {seed}: {description}");
                return;
            }
            Err(failure) => others.push(failure.what.lines().next().map(str::to_owned)),
            Ok(_) => {}
        }
    }
    others.truncate(5);
    panic!("no check finds {misbehavior:?} as {description}, but {others:?}");
}

#[test]
fn exclusivity() {
    let fault = Misbehavior::EndsBreaksEarly;
    find(fault, Scenario::caching_badly, "of one file");
}

#[test]
fn coherence() {
    let fault = Misbehavior::ForgetsReadBreaks;
    find(fault, Scenario::caching, "a stale value of");
}

#[test]
fn coherence_of_directories() {
    let fault = Misbehavior::ForgetsReadBreaks;
    find(fault, Scenario::listing, "a stale listing of");
}

#[test]
fn handles() {
    let fault = Misbehavior::EndsBreaksEarly;
    find(fault, Scenario::caching_badly, "in spite of");
}

#[test]
fn epochs() {
    let fault = Misbehavior::LowersEpochs;
    find(fault, Scenario::caching, "arrived after");
    let fault = Misbehavior::NamesOtherRights;
    find(fault, Scenario::caching, "does not break the rights of");
}

#[test]
fn delivery() {
    let fault = Misbehavior::LosesNotifications;
    find(fault, Scenario::caching, "never received");
}

#[test]
fn liveness() {
    let fault = Misbehavior::DelaysNotifications;
    find(fault, Scenario::caching, "a response after more than");
}
