//! Waiting for a peer that sends nothing, or grants nothing, has a time limit.

use smbeam_proto::smbd::{Config, Role, Violation};
use wire::smbd::TransferFlags;

use crate::pair::{Side, at, bytes, client, grant, server};

#[test]
fn a_client_that_never_negotiates_has_five_seconds() {
    let mut side = Side::new(Config::new(Role::Server));
    side.start();
    assert_eq!(side.core.next_timeout(), Some(at(5)));
    side.wait_until(4);
    assert_eq!(side.end, None);
    side.wait_until(5);
    assert_eq!(side.end, Some(Violation::NegotiateTimeout));
    assert_eq!(side.core.next_timeout(), None);
}

#[test]
fn a_server_that_never_answers_has_two_minutes() {
    let mut side = Side::new(Config::new(Role::Client));
    side.start();
    assert_eq!(side.core.next_timeout(), Some(at(120)));
    side.wait_until(120);
    assert_eq!(side.end, Some(Violation::NegotiateTimeout));
}

#[test]
fn a_silent_peer_is_asked_and_then_left() {
    let mut side = client();
    side.wait_until(119);
    assert!(side.out.is_empty());
    side.wait_until(120);
    let sent = side.transfers();
    assert_eq!(
        (sent.len(), sent[0].flags),
        (1, TransferFlags::RESPONSE_REQUESTED)
    );
    assert_eq!(side.core.next_timeout(), Some(at(125)));
    side.wait_until(125);
    assert_eq!(side.end, Some(Violation::KeepAliveTimeout));
}

#[test]
fn any_message_is_a_sign_of_life() {
    let mut side = client();
    side.wait_until(120);
    side.now = at(124);
    side.receive(&bytes(&grant(0), &[]));
    assert_eq!(side.core.next_timeout(), Some(at(244)));
    side.wait_until(243);
    assert_eq!(side.end, None);
}

#[test]
fn a_peer_that_cannot_even_be_asked_is_left() {
    let mut side = server();
    side.wait_until(120);
    assert!(side.out.is_empty(), "there is no credit to ask with");
    side.wait_until(125);
    assert_eq!(side.end, Some(Violation::KeepAliveTimeout));
}

#[test]
fn a_peer_that_lives_but_grants_nothing_is_left() {
    let mut side = server();
    side.send(b"an answer", None);
    for second in [20, 40, 59] {
        side.now = at(second);
        side.receive(&bytes(&grant(0), &[]));
    }
    side.wait_until(59);
    assert_eq!(side.end, None);
    side.wait_until(60);
    assert_eq!(side.end, Some(Violation::CreditTimeout));
}

#[test]
fn a_credit_stops_the_clock() {
    let mut side = server();
    side.send(b"an answer", None);
    side.now = at(59);
    side.receive(&bytes(&grant(2), &[]));
    assert_eq!(side.core.next_timeout(), Some(at(59 + 120)));
    side.wait_until(100);
    assert_eq!(side.end, None);
}
