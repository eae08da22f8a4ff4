//! SMB Direct from end to end: each message arrives once, whole and in order, over any connection.
//!
//! `smbeam_sim::seeds` has the environment variables that choose the seeds.

use proto::smbd::Violation;
use smbeam_sim::seeds;
use smbeam_sim::smbd::{Report, Scenario, run};

/// Seeds of a run of the tests: some seconds on a slow machine.
const SEEDS: u64 = 100;

fn is_one_alone() -> bool {
    seeds::is_single()
}

fn run_all(test: &str, scenario: &Scenario) -> Vec<Report> {
    let seeds = seeds::chosen(SEEDS);
    println!("seeds {seeds:?}");
    let reports = seeds.map(|seed| {
        println!("seed {seed}");
        let report = run(seed, scenario).unwrap_or_else(|failure| {
            panic!(
                "{failure}\n\nto see it again: SMBEAM_SIM_SEED={seed} \
                 cargo test -p smbeam-sim --test smb_direct_keeps_messages {test}"
            )
        });
        println!("{report:?}");
        assert_eq!(report.messages, 2 * scenario.messages);
        report
    });
    reports.collect()
}

#[test]
fn on_a_good_connection() {
    for report in run_all("on_a_good_connection", &Scenario::calm()) {
        assert_eq!((report.connections, report.ended), (1, 0));
    }
}

#[test]
fn with_few_credits_and_slow_drivers() {
    for report in run_all("with_few_credits_and_slow_drivers", &Scenario::tight()) {
        assert_eq!((report.connections, report.ended), (1, 0));
    }
}

#[test]
fn over_connections_that_are_lost_or_fall_silent() {
    let test = "over_connections_that_are_lost_or_fall_silent";
    let reports = run_all(test, &Scenario::lossy());
    let by_timer = |report: &&Report| {
        let violation = report.last_violation;
        violation.is_none_or(|violation| {
            matches!(
                violation,
                Violation::KeepAliveTimeout
                    | Violation::CreditTimeout
                    | Violation::NegotiateTimeout
            )
        })
    };
    assert_eq!(reports.iter().filter(by_timer).count(), reports.len());
    assert!(is_one_alone() || reports.iter().any(|report| report.ended > 0));
    assert!(is_one_alone() || reports.iter().any(|report| report.connections > 3));
}

#[test]
fn beside_peers_that_lie() {
    let reports = run_all("beside_peers_that_lie", &Scenario::spoiled());
    assert!(is_one_alone() || reports.iter().any(|report| report.ended > 3));
}
