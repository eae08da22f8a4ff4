//! Faults that users of file servers reported do not occur: awkward names, mounted, full and absent
//! disks, addresses with zones, names in other alphabets.

use smbeam_tests::harness::Test;
use smbeam_tests::script::FIELD;

pub(crate) fn tests() -> Vec<Test> {
    let scripts = FIELD.scripts();
    scripts
        .map(|script| Test::new(script.name, move || script.check()))
        .collect()
}
