//! No committed input of a fuzzer makes a target fail.

use std::fs;
use std::path::{Path, PathBuf};

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus")
}

fn inputs(target: &str) -> Vec<PathBuf> {
    let directory = corpus().join(target);
    let entries =
        fs::read_dir(&directory).unwrap_or_else(|e| panic!("{}: {e}", directory.display()));
    let mut inputs: Vec<PathBuf> = entries
        .map(|entry| entry.expect("the directory can be read").path())
        .collect();
    inputs.sort();
    inputs
}

#[test]
fn every_input_that_was_found_does_no_harm() {
    for (target, run) in smbeam_sim::fuzz::TARGETS {
        let inputs = inputs(target);
        assert!(!inputs.is_empty(), "{target} has seeds");
        for input in inputs {
            println!("{target}: {}", input.display());
            run(&fs::read(&input).expect("the input can be read"));
        }
    }
}

#[test]
fn every_corpus_has_a_target() {
    for entry in fs::read_dir(corpus()).expect("the corpus exists") {
        let name = entry.expect("the directory can be read").file_name();
        let is_known = |target: &str| name == *target;
        assert!(
            smbeam_sim::fuzz::TARGETS
                .iter()
                .any(|(target, _)| is_known(target)),
            "{name:?}"
        );
    }
}
