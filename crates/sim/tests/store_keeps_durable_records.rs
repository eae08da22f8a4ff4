//! The simulated store keeps what was durable before a crash, and loses what was not, in whole.
//!
//! `smbeam_sim::seeds` has the environment variables that choose the seeds.

use smbeam_sim::seeds;
use smbeam_sim::store::{StoreReport, run};

/// Seeds of a run of the tests.
const SEEDS: u64 = 200;

#[test]
fn a_crash_loses_only_operations_in_progress() {
    let mut total = StoreReport::default();
    for seed in seeds::chosen(SEEDS) {
        println!("seed {seed}");
        let report = run(seed).unwrap_or_else(|failure| {
            panic!(
                "{failure}\n\nto see it again: SMBEAM_SIM_SEED={seed} cargo test -p smbeam-sim \
                 --test store_keeps_durable_records"
            )
        });
        total.crashes += report.crashes;
        total.completed += report.completed;
        total.interrupted += report.interrupted;
        total.survived += report.survived;
    }
    println!("{total:?}");
    if !seeds::is_single() {
        // Both outcomes of an interruption occur.
        assert!(total.crashes > 0 && total.completed > 0);
        assert!(total.survived > 0 && total.survived < total.interrupted);
    }
}
