//! How much a run of the tests does.
//!
//! A default run crosses each limit once and moves little data. `cargo xtask test full` sets
//! [`VARIABLE`]: all transports, full sizes, all rounds.

use std::env;

/// The environment variable for the scale of a run: `full`, or unset.
pub const VARIABLE: &str = "SMBEAM_TEST_SCALE";

/// Whether this is a full run.
pub fn is_full() -> bool {
    env::var_os(VARIABLE).is_some_and(|value| value == "full")
}

/// `default` in a default run, `full` in a full one.
pub fn choose<T>(default: T, full: T) -> T {
    if is_full() { full } else { default }
}

/// The variable and its value for a full or a default run.
pub fn variable(is_full: bool) -> (&'static str, &'static str) {
    (VARIABLE, if is_full { "full" } else { "default" })
}
