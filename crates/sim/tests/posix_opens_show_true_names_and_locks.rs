//! Clients with the SMB3 POSIX extensions and clients without them open, rename, replace, delete
//! and lock the same files, and lose their connections. Names lead to the files that have them,
//! files without a name keep their data, locks exclude each other and are only refused because of
//! another, and in the end nothing is open or locked.
//!
//! `smbeam_sim::seeds` has the environment variables that choose the seeds.

use smbeam_sim::{Report, Scenario, seeds};

/// Seeds of the test: some seconds on a slow machine.
const SEEDS: u64 = 200;

#[test]
fn posix_opens_show_true_names_and_locks() {
    let seeds = seeds::chosen(SEEDS);
    println!("seeds {seeds:?}");
    let reports = seeds.map(|seed| {
        // Printed before the run: an assertion of the core ends the test without a report.
        println!("seed {seed}");
        let report = smbeam_sim::run(seed, &Scenario::posix(seed)).unwrap_or_else(|failure| {
            panic!(
                "{failure}\n\nto see it again: SMBEAM_SIM_SEED={seed} \
                 cargo test -p smbeam-sim --test posix_opens_show_true_names_and_locks"
            )
        });
        println!("{report:?}");
        report
    });
    let reports: Vec<Report> = reports.collect();
    // A single seed may lack one of them.
    if reports.len() <= 50 {
        return;
    }
    let counts: [fn(&Report) -> u64; 9] = [
        |report| report.posix_opens,
        |report| report.posix_renames,
        |report| report.posix_locks,
        |report| report.locks_waited_for,
        |report| report.posix_opens_reclaimed,
        |report| report.nameless_reads,
        |report| report.names_checked,
        |report| report.names_removed,
        |report| report.refusals_checked,
    ];
    for (index, count) in counts.iter().enumerate() {
        let sum: u64 = reports.iter().map(count).sum();
        assert!(sum > 0, "the event with index {index} never occurred");
    }
}
