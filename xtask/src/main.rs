//! The commands of a developer: demo, test, lab, bench-compare.
#![forbid(unsafe_code)]

fn main() {}
