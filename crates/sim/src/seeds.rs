//! The seeds of a run of the tests, which the environment can change.

use std::env;
use std::ops::Range;

/// Name of the environment variable with the one seed to run, to repeat a failure.
pub const SEED: &str = "SMBEAM_SIM_SEED";
/// Name of the environment variable with the number of seeds to run.
pub const SEEDS: &str = "SMBEAM_SIM_SEEDS";
/// Name of the environment variable with the first seed to run; 0 if it is not set.
pub const FIRST_SEED: &str = "SMBEAM_SIM_FIRST_SEED";

/// Returns the range of seeds that a test runs. If the variable [`SEED`] is set, that is its value
/// alone. Otherwise the range starts at [`FIRST_SEED`] and has the length [`SEEDS`], or `default`
/// if that is not set.
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

/// Returns whether the environment selects one seed ([`SEED`]). A test then does not require that
/// each kind of event occurs.
pub fn is_single() -> bool {
    env::var_os(SEED).is_some()
}

fn number(name: &str) -> Option<u64> {
    let value = env::var(name).ok()?;
    let number = value.parse();
    Some(number.unwrap_or_else(|_| panic!("{name} is not a number: {value}")))
}
