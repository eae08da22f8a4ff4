//! With any faults of the network, the disk and other clients, the responses of the server stay
//! true, and in the end everything finishes.
//!
//! `smbeam_sim::seeds` has the environment variables that choose the seeds.

use smbeam_sim::{Protection, Report, Scenario, TRANSPORTS, seeds};

/// Seeds of a run of the tests: about half a minute on a slow machine.
const SEEDS: u64 = 200;

fn run(seed: u64, scenario: &Scenario, test: &str) -> Report {
    smbeam_sim::run(seed, scenario).unwrap_or_else(|failure| {
        panic!(
            "{failure}\n\nto see it again: \
             SMBEAM_SIM_SEED={seed} cargo test -p smbeam-sim --test simulation {test}"
        )
    })
}

fn run_all(test: &str, scenario: impl Fn(u64) -> Scenario) -> Vec<Report> {
    run_some(SEEDS, test, scenario)
}

fn run_some(count: u64, test: &str, scenario: impl Fn(u64) -> Scenario) -> Vec<Report> {
    let seeds = seeds::chosen(count);
    println!("seeds {seeds:?}");
    let reports = seeds.map(|seed| {
        // Printed before the run: an assertion of the core ends the test without a report.
        println!("seed {seed}");
        let report = run(seed, &scenario(seed), test);
        println!("{report:?}");
        report
    });
    reports.collect()
}

#[test]
fn clients_and_server_get_on_when_nothing_goes_wrong() {
    run_all("clients_and_server_get_on_when_nothing_goes_wrong", |_| {
        Scenario::calm()
    });
}

#[test]
fn no_storm_makes_the_server_lie_or_hang() {
    run_all("no_storm_makes_the_server_lie_or_hang", Scenario::any);
}

#[test]
fn a_waiting_lock_is_granted_or_ends() {
    let test = "a_waiting_lock_is_granted_or_ends";
    let reports = run_all(test, |_| Scenario::crowded());
    // A single seed may lack one of them.
    if reports.len() > 50 {
        for count in [
            |report: &Report| report.locks_waited_for,
            |report: &Report| report.locks_cancelled,
            |report: &Report| report.locks_ended,
        ] {
            assert!(reports.iter().map(count).sum::<u64>() > 0);
        }
    }
}

#[test]
fn opens_outlive_lost_connections_until_their_time_is_up() {
    let test = "opens_outlive_lost_connections_until_their_time_is_up";
    let reports = run_some(SEEDS / 2, test, Scenario::disconnecting);
    // A single seed may lack one of them.
    if reports.len() > 50 {
        for count in [
            |report: &Report| report.opens_disconnected,
            |report: &Report| report.opens_reclaimed,
            |report: &Report| report.timeouts_without_connection,
        ] {
            assert!(reports.iter().map(count).sum::<u64>() > 0);
        }
    }
}

/// Clients stop to receive for some time, with little memory for responses. The others continue,
/// and in the end everything finishes and the ledger is empty.
#[test]
fn clients_that_do_not_receive_stop_no_other_client() {
    let test = "clients_that_do_not_receive_stop_no_other_client";
    let reports = run_all(test, Scenario::withholding);
    // A single seed may lack one of them.
    if reports.len() > 50 {
        for count in [
            |report: &Report| report.withheld,
            |report: &Report| report.paused,
            |report: &Report| report.answers_beside_paused,
        ] {
            assert!(reports.iter().map(count).sum::<u64>() > 0);
        }
    }
}

/// Each transport by itself, with RDMA if it supports that: clients that sign or encrypt rarely use
/// RDMA.
#[test]
fn no_invalid_memory_is_accepted_over_any_transport() {
    for (name, carrier) in TRANSPORTS {
        println!("over {name}");
        let reports = run_some(
            SEEDS / 8,
            "no_invalid_memory_is_accepted_over_any_transport",
            |seed| {
                let mut scenario = Scenario::stormy();
                scenario.transports = vec![carrier];
                scenario.faults.invalid_memory = 150;
                if seed % 2 == 0 {
                    scenario.protections = vec![Protection::Plain];
                }
                scenario
            },
        );
        let sum = |count: fn(&Report) -> u64| reports.iter().map(count).sum::<u64>();
        // A single seed may lack one of them.
        if reports.len() > 10 {
            let has_memory = carrier.rdma.is_some();
            assert_eq!(sum(|report| report.remote) > 0, has_memory, "{name}");
            assert_eq!(sum(|report| report.refused) > 0, has_memory, "{name}");
        }
    }
}

#[test]
fn a_seed_runs_twice_alike() {
    let test = "a_seed_runs_twice_alike";
    let first = run(7, &Scenario::stormy(), test);
    assert_eq!(first, run(7, &Scenario::stormy(), test));
}
