//! The seeds of a run of the tests, which the environment can change.

use std::env;
use std::ops::Range;

/// The variable that names one seed, to repeat a failure.
pub const SEED: &str = "SMBEAM_SIM_SEED";
/// The variable that names the number of seeds.
pub const SEEDS: &str = "SMBEAM_SIM_SEEDS";
/// The variable that names the first seed; 0 where it is not set.
pub const FIRST_SEED: &str = "SMBEAM_SIM_FIRST_SEED";

/// The seeds to run: the one that [`SEED`] names, or as many as [`SEEDS`] says, `default` where it
/// is not set, from [`FIRST_SEED`] on.
///
/// # Panics
/// A variable is not a number.
pub fn chosen(default: u64) -> Range<u64> {
    if let Some(seed) = number(SEED) {
        return seed..seed + 1;
    }
    let first = number(FIRST_SEED).unwrap_or(0);
    first..first + number(SEEDS).unwrap_or(default)
}

/// Whether one seed is repeated. It alone need not show each kind of event.
pub fn is_single() -> bool {
    env::var_os(SEED).is_some()
}

fn number(name: &str) -> Option<u64> {
    let value = env::var(name).ok()?;
    let number = value.parse();
    Some(number.unwrap_or_else(|_| panic!("{name} is not a number: {value}")))
}
