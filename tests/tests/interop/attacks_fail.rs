//! Attacks on a server leave its memory bounded and its other clients served, and change nothing
//! that the attacker may not change.

use smbeam_tests::harness::Test;
use smbeam_tests::script::ATTACKS;

pub(crate) fn tests() -> Vec<Test> {
    let scripts = ATTACKS.scripts();
    scripts
        .map(|script| Test::new(script.name, move || script.check()))
        .collect()
}
