//! Credits and MessageIds as a client sees them.

use proto::violation::Violation;
use wire::dialect::Dialect;
use wire::{Command, MessageId, SessionId, Status};

use crate::harness::{Client, Options, Rig, bytes_of};

fn echo(client: &mut Client, id: u64, charge: u16, credits: u16) -> crate::harness::Message {
    let bytes = bytes_of(|bytes| wire::echo::Request.encode(bytes));
    let mut message = client.message(Command::ECHO, bytes);
    message.header.message_id = MessageId(id);
    message.header.credit_charge = charge;
    message.header.credits = credits;
    message
}

/// A client with 64 credits and 3 as its next MessageId.
fn client(rig: &mut Rig) -> Client {
    let mut client = Client::logged_in(rig, Options::default(), "alice");
    let message = echo(&mut client, 2, 1, 64);
    assert_eq!(client.ask(rig, message).header.credits, 64);
    client
}

#[test]
fn the_last_leg_of_a_login_grants_credits() {
    let mut rig = Rig::new(|_| {});
    let mut client = Client::new(&mut rig, Options::default());
    let bytes = client.negotiate_bytes();
    let mut message = client.message(Command::NEGOTIATE, bytes);
    message.header.credits = 8192;
    assert_eq!(client.ask(&mut rig, message).header.credits, 1);
    for (word, credits) in [("more", 1), ("refuse", 1), ("more", 1), ("alice", 8192)] {
        let mut message = client.setup(word, SessionId(0));
        message.header.credits = u16::MAX;
        let answer = client.ask(&mut rig, message);
        assert_eq!(answer.header.credits, credits, "{word}");
        client.session = match word {
            "more" => answer.header.session_id,
            _ => SessionId(0),
        };
    }
}

#[test]
fn a_request_for_no_credits_gets_its_charge_back() {
    let mut rig = Rig::new(|_| {});
    let mut client = client(&mut rig);
    for id in 3..300 {
        let message = echo(&mut client, id, 1, 0);
        assert_eq!(client.ask(&mut rig, message).header.credits, 1);
    }
}

#[test]
fn ids_come_in_any_order() {
    let mut rig = Rig::new(|_| {});
    let mut client = client(&mut rig);
    for id in [9, 3, 66, 4, 8, 5, 7, 6] {
        let message = echo(&mut client, id, 1, 1);
        let answer = client.ask(&mut rig, message);
        assert_eq!(answer.header.message_id, MessageId(id));
    }
}

#[test]
fn an_id_twice_or_out_of_the_window_ends_the_connection() {
    for id in [0, 2, 67, 1 << 40, u64::MAX] {
        let mut rig = Rig::new(|_| {});
        let mut client = client(&mut rig);
        let message = echo(&mut client, id, 1, 1);
        client.say(&mut rig, vec![message]);
        let violation = Violation::MessageIdOutOfWindow(MessageId(id));
        assert_eq!(rig.violations[&client.id], violation);
        assert!(client.hear(&mut rig).is_none());
    }
}

#[test]
fn a_charge_uses_that_number_of_ids() {
    let mut rig = Rig::new(|_| {});
    let mut client = client(&mut rig);
    let message = echo(&mut client, 3, 16, 1);
    assert_eq!(client.ask(&mut rig, message).header.credits, 16);
    let message = echo(&mut client, 19, 1, 1);
    assert_eq!(client.ask(&mut rig, message).status(), Status::SUCCESS);
    let message = echo(&mut client, 18, 1, 1);
    client.say(&mut rig, vec![message]);
    assert!(rig.violations.contains_key(&client.id));
}

#[test]
fn a_charge_beyond_the_window_ends_the_connection() {
    for charge in [65, u16::MAX] {
        let mut rig = Rig::new(|_| {});
        let mut client = client(&mut rig);
        let message = echo(&mut client, 3, charge, 1);
        client.say(&mut rig, vec![message]);
        assert!(rig.violations.contains_key(&client.id));
    }
}

#[test]
fn in_2_0_2_the_charge_means_nothing() {
    let mut rig = Rig::new(|_| {});
    let mut client = Client::logged_in(&mut rig, Options::only(Dialect::SMB_2_0_2), "alice");
    for id in 2..10 {
        let message = echo(&mut client, id, 77, 1);
        assert_eq!(client.ask(&mut rig, message).header.credits, 1);
    }
}

#[test]
fn an_id_left_out_holds_the_window_until_it_comes() {
    // smb2.credits.skipped_mid
    let mut rig = Rig::new(|_| {});
    let mut client = Client::logged_in(&mut rig, Options::default(), "alice");
    let message = echo(&mut client, 2, 1, 8192);
    assert_eq!(client.ask(&mut rig, message).header.credits, 8192);
    for id in 4..4 + 8191 {
        let message = echo(&mut client, id, 1, 1);
        assert_eq!(client.ask(&mut rig, message).header.credits, 0);
    }
    let message = echo(&mut client, 3, 1, u16::MAX);
    assert_eq!(client.ask(&mut rig, message).header.credits, 8192);
}

#[test]
fn the_last_answer_of_a_compound_grants_for_all() {
    let mut rig = Rig::new(|_| {});
    let mut client = client(&mut rig);
    let messages = vec![
        echo(&mut client, 3, 1, 5),
        echo(&mut client, 4, 1, 1),
        echo(&mut client, 5, 2, 3),
    ];
    let answers = client.ask_all(&mut rig, messages);
    let credits: Vec<u16> = answers.iter().map(|answer| answer.header.credits).collect();
    assert_eq!(credits, [0, 0, 5 + 1 + 4]);
}
