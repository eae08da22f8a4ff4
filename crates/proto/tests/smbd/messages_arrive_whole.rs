//! Messages of any length arrive once, in order and unchanged; wrong fragments end the connection.

use proptest::collection::vec;
use proptest::prelude::*;
use smbeam_proto::smbd::{Config, MessageToken, Refusal, Role, Violation};
use wire::DecodeError;
use wire::smbd::DataTransfer;

use crate::pair::{bytes, client, connected, data, grant, run, server};

fn message(length: usize, seed: u8) -> Vec<u8> {
    (0..length)
        .map(|index| (index as u8).wrapping_mul(31) ^ seed)
        .collect()
}

#[test]
fn a_message_of_any_length_arrives() {
    let (mut client, mut server) = connected(Config::new(Role::Client), Config::new(Role::Server));
    let payload = 8192 - 24;
    let lengths = [
        1,
        2,
        payload - 1,
        payload,
        payload + 1,
        2 * payload,
        131_072,
        1 << 20,
    ];
    let messages: Vec<_> = lengths.iter().map(|length| message(*length, 3)).collect();
    for message in &messages {
        client.send(message, None);
        run(&mut client, &mut server);
    }
    assert_eq!(server.got, messages);
    assert_eq!(client.done, (0..messages.len() as u64).collect::<Vec<_>>());
    assert!(client.messages.is_empty());
}

#[test]
fn a_message_may_take_more_sends_than_there_are_credits() {
    let tight = |role| Config {
        send_credit_target: 2,
        receive_credit_max: 2,
        max_send_size: 128,
        max_receive_size: 128,
        ..Config::new(role)
    };
    let (mut client, mut server) = connected(tight(Role::Client), tight(Role::Server));
    let message = message(100_000, 5);
    client.send(&message, None);
    server.send(&message, None);
    run(&mut client, &mut server);
    assert_eq!(
        (&server.got, &client.got),
        (&vec![message.clone()], &vec![message])
    );
}

#[test]
fn too_long_and_empty_messages_are_refused_without_ending_the_connection() {
    let mut side = client();
    let mut send = |length| {
        let (now, token) = (side.now, MessageToken(1));
        side.core.send(now, token, length, None, &mut side.effects)
    };
    let limit = 131_072;
    let length = limit + 1;
    assert_eq!(send(length), Err(Refusal::TooLong { length, limit }));
    assert_eq!(send(0), Err(Refusal::Empty));
    assert!(side.effects.is_empty());
    side.send(&message(131_072, 1), None);
    assert!(!side.out.is_empty());
}

#[test]
fn no_more_wait_than_are_allowed() {
    let config = Config {
        queue_depth: 3,
        ..Config::new(Role::Server)
    };
    // The server has no credit before the client's first data.
    let (_, mut server) = connected(Config::new(Role::Client), config);
    for _ in 0..3 {
        server.send(b"wait", None);
    }
    let (now, token) = (server.now, MessageToken(99));
    let refusal = server.core.send(now, token, 1, None, &mut server.effects);
    assert_eq!(refusal, Err(Refusal::QueueFull));
}

#[test]
fn the_last_fragment_invalidates() {
    let mut side = client();
    side.send(&message(2500, 1), Some(0xABCD));
    side.send(b"small", Some(0x1234));
    let keys: Vec<_> = side.out.iter().map(|sent| sent.invalidate).collect();
    assert_eq!(keys, [None, None, Some(0xABCD), Some(0x1234)]);
}

#[test]
fn memory_is_free_when_the_last_send_of_the_message_is_completed() {
    let mut side = client();
    side.completes = false;
    let begin = side.last.map_or(0, |id| id.0 + 1);
    side.send(&message(1500, 1), None);
    side.send(b"small", None);
    let complete = |side: &mut crate::pair::Side, offset| {
        let id = smbeam_proto::smbd::SendId(begin + offset);
        side.core.sent(side.now, id, &mut side.effects);
        side.settle(&[]);
        side.done.clone()
    };
    assert_eq!(complete(&mut side, 0), []);
    assert_eq!(complete(&mut side, 1), [0]);
    assert_eq!(complete(&mut side, 2), [0, 1]);
}

#[test]
fn no_more_sends_are_posted_than_the_queue_pair_holds() {
    let config = Config {
        send_depth: 4,
        ..Config::new(Role::Client)
    };
    let (mut side, _) = connected(config, Config::new(Role::Server));
    side.completes = false;
    side.send(&message(100_000, 1), None);
    assert_eq!(side.out.len(), 4);
    let id = side.last.expect("it is sent");
    side.core.sent(side.now, id, &mut side.effects);
    side.settle(&[]);
    assert_eq!(side.out.len(), 8);
}

/// Invalid values of the fields of a data transfer, and the violations that they cause.
#[test]
fn every_invalid_field_ends_the_connection() {
    let good = DataTransfer {
        remaining_data_length: 0,
        data_offset: 24,
        data_length: 8,
        ..grant(1)
    };
    let offset = |value| {
        let field = "DataOffset";
        Some(Violation::Malformed(DecodeError::Invalid { field, value }))
    };
    let outside = |offset, length| {
        let field = "Buffer";
        Some(Violation::Malformed(DecodeError::OutOfBounds {
            field,
            offset,
            length,
        }))
    };
    let too_long = |length| {
        let limit = 1 << 20;
        Some(Violation::MessageTooLong { length, limit })
    };
    let credits = |value| {
        let name = "CreditsRequested";
        Some(Violation::Field { name, value })
    };
    type Change = fn(&mut DataTransfer);
    let max = u64::from(u32::MAX);
    let cases: &[(&str, Change, Option<Violation>)] = &[
        ("as it should be", |_| {}, None),
        (
            "no credit asked for",
            |t| t.credits_requested = 0,
            credits(0),
        ),
        (
            "most credits asked for",
            |t| t.credits_requested = u16::MAX,
            None,
        ),
        ("no credit granted", |t| t.credits_granted = 0, None),
        ("all flags", |t| t.flags.0 = u16::MAX, None),
        ("no offset", |t| t.data_offset = 0, offset(0)),
        ("data over the header", |t| t.data_offset = 16, offset(16)),
        ("not aligned", |t| t.data_offset = 20, offset(20)),
        ("not aligned", |t| t.data_offset = 25, offset(25)),
        ("offset outside", |t| t.data_offset = 32, outside(32, 8)),
        (
            "largest offset",
            |t| t.data_offset = !7,
            outside(max - 7, 8),
        ),
        (
            "largest odd offset",
            |t| t.data_offset = u32::MAX,
            offset(max),
        ),
        ("no data, but an offset", |t| t.data_length = 0, None),
        ("less data than came", |t| t.data_length = 7, None),
        ("more data than came", |t| t.data_length = 9, outside(24, 9)),
        ("most data", |t| t.data_length = u32::MAX, outside(24, max)),
        (
            "as much to come as fits",
            |t| t.remaining_data_length = (1 << 20) - 8,
            None,
        ),
        (
            "more to come than fits",
            |t| t.remaining_data_length = (1 << 20) - 7,
            too_long((1 << 20) + 1),
        ),
        (
            "most to come",
            |t| t.remaining_data_length = u32::MAX,
            too_long(max + 8),
        ),
    ];
    for (name, change, expected) in cases {
        let mut transfer = good;
        change(&mut transfer);
        let mut side = server();
        side.receive(&bytes(&transfer, &[1; 8]));
        assert_eq!(side.end, *expected, "{name}");
    }
}

#[test]
fn an_empty_message_that_promises_data_ends_the_connection() {
    let mut side = server();
    let wrong = DataTransfer {
        remaining_data_length: 5,
        ..grant(1)
    };
    side.receive(&bytes(&wrong, &[]));
    let (expected, found) = (0, 5);
    assert_eq!(side.end, Some(Violation::Remaining { expected, found }));
}

#[test]
fn an_offset_outside_ends_the_connection_even_without_data() {
    let mut side = server();
    let wrong = DataTransfer {
        data_offset: 32,
        ..grant(1)
    };
    side.receive(&bytes(&wrong, &[]));
    assert!(matches!(side.end, Some(Violation::Malformed(_))));
}

#[test]
fn a_message_that_is_cut_short_ends_the_connection() {
    for length in 0..20 {
        let mut side = server();
        side.receive(&bytes(&grant(1), &[])[..length]);
        assert!(
            matches!(side.end, Some(Violation::Malformed(_))),
            "{length}"
        );
    }
}

#[test]
fn fragments_must_state_exactly_the_remaining_length() {
    let wrong = [(100, 801), (100, 799), (100, 0), (0, 901), (901, 0)];
    for (length, remaining) in wrong {
        let mut side = server();
        side.receive(&data(100, 900));
        assert_eq!(side.end, None);
        side.receive(&data(length, remaining));
        let (expected, found) = (900, u64::from(length) + u64::from(remaining));
        assert_eq!(side.end, Some(Violation::Remaining { expected, found }));
    }
}

#[test]
fn credits_may_come_between_fragments() {
    let mut side = server();
    side.receive(&data(100, 50));
    side.receive(&bytes(&grant(3), &[]));
    side.receive(&data(50, 0));
    assert_eq!((side.end, side.got), (None, vec![vec![7; 150]]));
}

#[test]
fn a_send_that_is_longer_than_negotiated_ends_the_connection() {
    let mut side = server();
    side.receive(&data(1000, 0));
    assert_eq!(side.end, None);
    side.receive(&data(1001, 0));
    let (length, limit) = (1025, 1024);
    assert_eq!(side.end, Some(Violation::SendTooLong { length, limit }));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn messages_of_any_lengths_arrive_in_order(
        (credits, max_send_size, depth) in (1_u16..20, 128_u32..3000, 1_u16..6),
        (there, back) in (vec(1_usize..20_000, 0..12), vec(1_usize..20_000, 0..12)),
    ) {
        let config = |role| Config {
            send_credit_target: credits,
            receive_credit_max: credits,
            max_send_size,
            send_depth: depth,
            ..Config::new(role)
        };
        let (mut client, mut server) = connected(config(Role::Client), config(Role::Server));
        let mut sent = (Vec::new(), Vec::new());
        for (index, length) in there.iter().enumerate() {
            sent.0.push(message(*length, index as u8));
            client.send(&sent.0[index], None);
        }
        // The server's first credits come with the client's first data.
        client.send(b"hello", None);
        sent.0.push(b"hello".to_vec());
        for (index, length) in back.iter().enumerate() {
            sent.1.push(message(*length, index as u8));
            server.send(&sent.1[index], None);
        }
        run(&mut client, &mut server);
        prop_assert_eq!((server.got, client.got), sent);
    }
}
