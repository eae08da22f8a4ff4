//! Every order of events with small numbers of credits: both ends always continue, and finish.

use proto::smbd::Role;
use smbeam_sim::smbd::{Model, Peers, Searched, search, search_peers};

/// Far more states than any of these models has.
const STATES_MAX: usize = 500_000;

fn searched(model: &Model) -> Searched {
    let searched = search(model).unwrap_or_else(|what| panic!("{model:?}: {what}"));
    println!("{model:?}: {searched:?}");
    assert!(searched.ends > 0);
    searched
}

/// Credits that an end requests and grants: one to three of each.
fn credits() -> impl Iterator<Item = (u16, u16)> {
    (1..=3).flat_map(|target| (1..=3).map(move |max| (target, max)))
}

#[test]
fn two_sides_with_any_credits_exchange_messages() {
    for client in credits() {
        for server in credits() {
            searched(&Model {
                client,
                server,
                client_messages: vec![1],
                server_messages: vec![1],
                send_depth: 1,
                states_max: STATES_MAX,
            });
        }
    }
}

#[test]
fn two_sides_with_few_credits_send_several_messages_and_fragments() {
    for credits in [(1, 1), (2, 2)] {
        for (messages, send_depth) in [([1, 150], 1), ([250, 1], 2)] {
            searched(&Model {
                client: credits,
                server: credits,
                client_messages: messages.to_vec(),
                server_messages: vec![messages[1]],
                send_depth,
                states_max: STATES_MAX,
            });
        }
    }
}

fn serve(role: Role, max: u16, grants_max: u16, is_lax: bool) {
    let peers = Peers {
        role,
        credits: (3, max),
        messages: vec![1, 150],
        grants_max,
        whims: if max + grants_max < 4 { 3 } else { 1 },
        is_lax,
        send_depth: 1,
        states_max: STATES_MAX,
    };
    let searched = search_peers(&peers).unwrap_or_else(|what| panic!("{peers:?}: {what}"));
    println!("{peers:?}: {searched:?}");
    assert!(searched.ends > 0);
}

#[test]
fn any_peer_that_keeps_the_rules_is_served() {
    for (max, grants_max) in credits() {
        serve(Role::Client, max, grants_max, false);
        serve(Role::Server, max, grants_max, false);
    }
}

#[test]
fn any_peer_that_spends_its_last_credit_as_linux_does_is_served() {
    for (max, grants_max) in credits() {
        serve(Role::Client, max, grants_max, true);
        serve(Role::Server, max, grants_max, true);
    }
}
