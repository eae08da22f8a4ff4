//! Channels and servers come and go: every response to a caller stays true, and in the end
//! everything finishes.
//!
//! `smbeam_sim::seeds` has the environment variables that choose the seeds.

use smbeam_sim::session::{Outcome, Sessions, run};
use smbeam_sim::{TRANSPORTS, seeds};

/// Seeds of a run of the tests: some seconds on a slow machine.
const SEEDS: u64 = 100;

fn run_all(test: &str, scenario: impl Fn(u64) -> Sessions) -> Vec<Outcome> {
    run_some(SEEDS, test, scenario)
}

fn run_some(count: u64, test: &str, scenario: impl Fn(u64) -> Sessions) -> Vec<Outcome> {
    let seeds = seeds::chosen(count);
    println!("seeds {seeds:?}");
    let outcomes = seeds.map(|seed| {
        // Printed before the run: an assertion of a core ends the test without a report.
        println!("seed {seed}");
        let outcome = run(seed, &scenario(seed)).unwrap_or_else(|failure| {
            panic!(
                "{failure}\n\nto see it again: SMBEAM_SIM_SEED={seed} \
                 cargo test -p smbeam-sim --test sessions_keep_their_word {test}"
            )
        });
        println!("{outcome:?}");
        outcome
    });
    outcomes.collect()
}

#[test]
fn one_channel_and_nothing_goes_wrong() {
    run_all("one_channel_and_nothing_goes_wrong", |_| Sessions {
        channels: 1,
        ..Sessions::calm()
    });
}

#[test]
fn four_channels_and_nothing_goes_wrong() {
    let outcomes = run_all("four_channels_and_nothing_goes_wrong", |_| Sessions::calm());
    // Connections with RDMA name memory. A single seed may encrypt all of them.
    let named: u64 = outcomes.iter().map(|outcome| outcome.named).sum();
    assert!(named > 0 || outcomes.len() == 1);
}

#[test]
fn channels_are_lost_and_nothing_else() {
    let outcomes = run_all("channels_are_lost_and_nothing_else", |_| {
        let mut scenario = Sessions::stormy();
        scenario.held = 0;
        scenario.restart = 0;
        scenario.faults.disk_error = 0;
        scenario
    });
    // A single seed may lack one of them.
    if outcomes.len() > 50 {
        for count in [
            |outcome: &Outcome| outcome.cuts,
            |outcome: &Outcome| outcome.resent,
            |outcome: &Outcome| outcome.given_up,
        ] {
            assert!(outcomes.iter().map(count).sum::<u64>() > 0);
        }
    }
}

/// Each transport by itself: no other test is certain to use each of them.
#[test]
fn channels_are_lost_over_each_transport() {
    for (name, carrier) in TRANSPORTS {
        println!("over {name}");
        let test = "channels_are_lost_over_each_transport";
        let outcomes = run_some(SEEDS / 4, test, |seed| {
            let mut scenario = Sessions::stormy();
            scenario.transports = vec![carrier];
            scenario.restart = u16::from(seed % 2 == 0);
            scenario
        });
        if outcomes.len() > 20 {
            let sum = |count: fn(&Outcome) -> u64| outcomes.iter().map(count).sum::<u64>();
            assert!(sum(|outcome| outcome.cuts) > 0 && sum(|outcome| outcome.resent) > 0);
            let has_named = sum(|outcome| outcome.named) > 0;
            assert_eq!(has_named, carrier.rdma.is_some(), "{name}");
        }
    }
}

#[test]
fn no_storm_makes_a_session_break_its_word() {
    let outcomes = run_all("no_storm_makes_a_session_break_its_word", Sessions::any);
    if outcomes.len() > 50 {
        for count in [
            |outcome: &Outcome| outcome.restarts,
            |outcome: &Outcome| outcome.timed_out,
            |outcome: &Outcome| outcome.bindings,
        ] {
            assert!(outcomes.iter().map(count).sum::<u64>() > 0);
        }
    }
}

/// The account is disabled while its sessions have opens, and while clients log in.
#[test]
fn a_disabled_account_has_no_sessions() {
    let outcomes = run_all("a_disabled_account_has_no_sessions", |seed| {
        let scenario = match seed % 2 {
            0 => Sessions::calm(),
            _ => Sessions::stormy(),
        };
        Sessions {
            disable: 20,
            restart: 0,
            held: 0,
            ..scenario
        }
    });
    if outcomes.len() > 50 {
        for count in [
            |outcome: &Outcome| outcome.disabled,
            |outcome: &Outcome| outcome.ended_by_disabling,
            |outcome: &Outcome| outcome.outdated_logins,
        ] {
            assert!(outcomes.iter().map(count).sum::<u64>() > 0);
        }
    }
}

/// An administrator ends sessions with opens and requests in flight.
#[test]
fn a_session_that_an_administrator_ends_leaves_nothing() {
    let test = "a_session_that_an_administrator_ends_leaves_nothing";
    let outcomes = run_some(SEEDS / 4, test, |seed| {
        let scenario = match seed % 2 {
            0 => Sessions::calm(),
            _ => Sessions::stormy(),
        };
        Sessions {
            end: 10,
            restart: 0,
            held: 0,
            ..scenario
        }
    });
    if outcomes.len() > 20 {
        let ended = outcomes
            .iter()
            .map(|outcome| outcome.ended_by_administrator);
        assert!(ended.sum::<u64>() > 0);
    }
}

#[test]
fn a_seed_runs_twice_alike() {
    let outcome = || run(7, &Sessions::stormy()).expect("it goes well");
    assert_eq!(outcome(), outcome());
}
