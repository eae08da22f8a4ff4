//! No peer sends without a credit, each peer gets credits, and idle peers exchange no messages.

use smbeam_proto::smbd::{Config, Role, Violation};
use wire::smbd::{DataTransfer, TransferFlags};

use crate::pair::{bytes, client, connected, data, grant, run, server};

fn config(role: Role, target: u16, max: u16) -> Config {
    Config {
        send_credit_target: target,
        receive_credit_max: max,
        ..Config::new(role)
    }
}

#[test]
fn nothing_is_sent_without_a_credit() {
    let mut side = server();
    side.send(b"an answer", None);
    assert!(side.out.is_empty());
    side.receive(&bytes(&grant(5), &[]));
    assert_eq!(side.transfers().len(), 1);
}

#[test]
fn the_last_credit_buys_a_grant() {
    let mut side = client();
    for _ in 0..20 {
        side.send(b"x", None);
    }
    // Ten were granted. The first message grants all that the peer has requested, the last one
    // grants one more.
    let grants: Vec<_> = side
        .transfers()
        .iter()
        .map(|sent| sent.credits_granted)
        .collect();
    assert_eq!(grants, [10, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    assert_eq!(side.core.snapshot().queued, 10);
}

#[test]
fn the_last_credit_is_held_back_while_there_is_no_receive_to_grant() {
    let mut side = client();
    for _ in 0..9 {
        side.send(b"x", None);
    }
    side.out.clear();
    side.posts = false;
    // The peer has used all its credits, and no more receives are posted.
    for _ in 0..10 {
        side.receive(&bytes(&grant(0), &[]));
    }
    assert!(side.out.is_empty(), "a single one would only come back");
    side.post(1);
    let sent = side.transfers();
    assert_eq!((sent.len(), sent[0].credits_granted), (1, 2));
    side.receive(&bytes(&grant(1), &[]));
    side.send(b"y", None);
    assert!(side.out.is_empty());
    side.post(1);
    let sent = side.transfers();
    assert_eq!((sent.len(), sent[0].credits_granted), (1, 1));
}

#[test]
fn a_peer_that_sends_without_a_credit_is_left() {
    let mut side = server();
    side.posts = false;
    // Ten credits and a receive in reserve.
    for _ in 0..10 {
        side.receive(&bytes(&grant(0), &[]));
        assert_eq!(side.end, None);
    }
    side.receive(&bytes(&grant(0), &[]));
    assert_eq!(side.end, Some(Violation::NoCredit));
}

#[test]
fn a_server_that_sends_before_it_has_a_credit_is_left() {
    let mut side = client();
    side.receive(&data(5, 0));
    assert_eq!(side.end, Some(Violation::NoCredit));
}

#[test]
fn a_grant_beyond_the_field_ends_the_connection() {
    let mut side = server();
    side.receive(&bytes(&grant(u16::MAX), &[]));
    assert_eq!(side.end, None);
    side.receive(&bytes(&grant(u16::MAX), &[]));
    assert_eq!(side.end, Some(Violation::TooManyCredits(131_070)));
}

#[test]
fn a_peer_that_runs_low_is_granted_more_at_once() {
    let mut side = server();
    side.receive(&bytes(&grant(10), &[]));
    for _ in 0..3 {
        side.receive(&data(5, 0));
        assert!(side.out.is_empty());
    }
    // Five of ten credits are left.
    side.receive(&data(5, 0));
    assert_eq!(side.end, None);
    let sent = side.transfers();
    assert_eq!(sent.len(), 1);
    assert_eq!((sent[0].data_length, sent[0].credits_granted), (0, 5));
}

#[test]
fn a_peer_that_is_granted_little_by_little_is_not_left_with_little() {
    // A peer that cannot spend its last credit, because it has nothing to grant, sends nothing that
    // would start this side.
    let mut side = server();
    side.posts = false;
    side.receive(&bytes(&grant(10), &[]));
    for _ in 0..9 {
        side.receive(&data(5, 0));
    }
    assert_eq!(side.core.snapshot().receive_credits, 1);
    while side.asked > 0 {
        side.post(1);
    }
    assert_eq!(side.core.snapshot().receive_credits, 6);
}

#[test]
fn grants_go_with_data_where_there_are_some() {
    let mut side = server();
    side.receive(&bytes(&grant(10), &[]));
    side.receive(&data(5, 0));
    side.send(b"an answer", None);
    let sent = side.transfers();
    assert_eq!(
        (sent.len(), sent[0].data_length, sent[0].credits_granted),
        (1, 9, 2)
    );
}

#[test]
fn a_keep_alive_is_answered_without_another_one() {
    let mut side = server();
    let ask = DataTransfer {
        flags: TransferFlags::RESPONSE_REQUESTED,
        ..grant(10)
    };
    side.receive(&bytes(&ask, &[]));
    let sent = side.transfers();
    assert_eq!((sent.len(), sent[0].flags), (1, TransferFlags::NONE));
}

#[test]
fn a_peer_may_raise_its_request() {
    let mut side = server();
    let want = |credits_requested| DataTransfer {
        credits_requested,
        ..grant(10)
    };
    side.receive(&bytes(&want(1), &[]));
    assert_eq!(side.core.snapshot().receive_credit_target, 1);
    side.send(b"x", None);
    assert_eq!(side.transfers()[0].credits_granted, 0);
    // Eight of its old credits are left. That is below half of its new request, so the grant does
    // not wait.
    side.receive(&bytes(&want(u16::MAX), &[]));
    let sent = side.transfers();
    assert_eq!((sent.len(), sent[0].data_length), (1, 0));
    assert_eq!(sent[0].credits_granted, 255 - 8);
    assert_eq!(side.core.snapshot().receive_credit_target, 255);
}

#[test]
fn two_peers_come_to_rest_with_any_request() {
    for (target, max) in (1..=6).flat_map(|target| (1..=6).map(move |max| (target, max))) {
        let (mut client, mut server) = connected(
            config(Role::Client, target, max),
            config(Role::Server, max, target),
        );
        for _ in 0..10 {
            client.send(b"a question", None);
            assert!(run(&mut client, &mut server) < 8, "{target} {max}");
            server.send(b"an answer", None);
            assert!(run(&mut client, &mut server) < 8, "{target} {max}");
        }
        assert_eq!((client.got.len(), server.got.len()), (10, 10));
    }
}

#[test]
fn an_untrusted_peer_has_few_credits() {
    let wanted = Config {
        receive_credits_at_first: 3,
        ..config(Role::Server, 10, 50)
    };
    assert_eq!((wanted.receives_at_first(), wanted.receives()), (4, 51));
    let (mut client, mut server) = connected(config(Role::Client, 40, 10), wanted);
    for _ in 0..40 {
        client.send(b"hello", None);
        run(&mut client, &mut server);
        let snapshot = server.core.snapshot();
        assert!(snapshot.receive_credits <= 3 && snapshot.posted <= 4);
        assert_eq!(client.core.snapshot().queued, 0);
    }
    let (core, effects) = (&mut server.core, &mut server.effects);
    core.trust(effects);
    server.settle(&[]);
    assert_eq!(server.core.snapshot().posted, 41);
    server.send(b"welcome", None);
    run(&mut client, &mut server);
    assert_eq!(client.core.snapshot().send_credits, 40);
}
