//! With leases and oplocks, no client caches what another writes, no cache returns data older than
//! completed writes, and every break ends, however clients acknowledge it.
//!
//! `smbeam_sim::seeds` has the environment variables that choose the seeds.

use smbeam_sim::{Report, Scenario, seeds};

/// Seeds of each test: some seconds on a slow machine.
const SEEDS: u64 = 150;

fn run_all(test: &str, scenario: impl Fn(u64) -> Scenario) -> Vec<Report> {
    let seeds = seeds::chosen(SEEDS);
    println!("seeds {seeds:?}");
    let reports = seeds.map(|seed| {
        // Printed before the run: an assertion of the core ends the test without a report.
        println!("seed {seed}");
        let report = smbeam_sim::run(seed, &scenario(seed)).unwrap_or_else(|failure| {
            panic!(
                "{failure}\n\nto see it again: SMBEAM_SIM_SEED={seed} \
                 cargo test -p smbeam-sim --test caches_are_coherent {test}"
            )
        });
        println!("{report:?}");
        report
    });
    reports.collect()
}

/// Checks that each kind of event occurred. A single seed may lack one of them.
fn check_that_all_occurred(reports: &[Report], counts: &[fn(&Report) -> u64]) {
    if reports.len() <= 50 {
        return;
    }
    for (index, count) in counts.iter().enumerate() {
        let sum: u64 = reports.iter().map(count).sum();
        assert!(sum > 0, "the event with index {index} never occurred");
    }
}

const COUNTS: [fn(&Report) -> u64; 6] = [
    |report| report.grants,
    |report| report.breaks,
    |report| report.acknowledgments,
    |report| report.cached_reads,
    |report| report.delayed_writes,
    |report| report.reused_opens,
];

#[test]
fn caches_are_coherent_and_breaks_end_soon() {
    let reports = run_all("caches_are_coherent_and_breaks_end_soon", Scenario::caching);
    check_that_all_occurred(&reports, &COUNTS);
}

#[test]
fn cached_listings_of_directories_are_coherent() {
    let test = "cached_listings_of_directories_are_coherent";
    let reports = run_all(test, Scenario::listing);
    check_that_all_occurred(&reports, &[|report| report.cached_listings]);
}

#[test]
fn bad_acknowledgments_stop_no_other_client() {
    let test = "bad_acknowledgments_stop_no_other_client";
    let reports = run_all(test, Scenario::caching_badly);
    check_that_all_occurred(&reports, &COUNTS);
    check_that_all_occurred(&reports, &[|report| report.unacknowledged]);
}
