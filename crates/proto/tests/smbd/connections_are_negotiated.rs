//! Both peers agree on the same sizes; a peer with an impossible request is refused or
//! disconnected.

use proptest::prelude::*;
use smbeam_proto::smbd::{Config, Negotiated, Role, Violation};
use wire::Status;
use wire::smbd::{NegotiateRequest, NegotiateResponse};

use crate::pair::{Side, connected, request, response, run};

fn hear_request(request: &NegotiateRequest) -> Side {
    let mut side = Side::new(Config::new(Role::Server));
    side.start();
    let mut message = Vec::new();
    request.encode(&mut message);
    side.receive(&message);
    side
}

fn hear_response(response: &NegotiateResponse) -> Side {
    let mut side = Side::new(Config::new(Role::Client));
    side.start();
    let mut message = Vec::new();
    response.encode(&mut message);
    side.receive(&message);
    side
}

fn answer(side: &mut Side) -> NegotiateResponse {
    let sent = side.out.pop_front().expect("the server answers");
    NegotiateResponse::decode(&sent.bytes).expect("with a response")
}

#[test]
fn each_peer_sends_within_the_limits_of_the_other() {
    let client = Config {
        max_send_size: 4096,
        max_receive_size: 1364,
        max_fragmented_size: 200_000,
        max_read_write_size: 1 << 20,
        ..Config::new(Role::Client)
    };
    let (client, server) = connected(client, Config::new(Role::Server));
    let (client, server) = (client.ready.expect("sizes"), server.ready.expect("sizes"));
    assert_eq!(
        (client.max_send_size, client.max_receive_size),
        (4096, 1364)
    );
    assert_eq!(
        (server.max_send_size, server.max_receive_size),
        (1364, 4096)
    );
    assert_eq!(client.max_fragmented_send_size, 1 << 20);
    assert_eq!(server.max_fragmented_send_size, 200_000);
    assert_eq!(client.max_fragmented_receive_size, 200_000);
    assert_eq!(
        (client.max_read_write_size, server.max_read_write_size),
        (1 << 20, 8 << 20)
    );
}

#[test]
fn the_exchange_of_the_specification_comes_out_alike() {
    // [MS-SMBD] 4.1
    let mut server = Side::new(Config {
        send_credit_target: 10,
        receive_credit_max: 10,
        max_send_size: 1024,
        max_receive_size: 1024,
        max_fragmented_size: 131_072,
        max_read_write_size: 1 << 20,
        ..Config::new(Role::Server)
    });
    server.start();
    let mut message = Vec::new();
    request().encode(&mut message);
    server.receive(&message);
    assert_eq!(answer(&mut server), response());
}

#[test]
fn a_client_of_another_version_gets_a_refusal() {
    for (min_version, max_version) in [(0, 0), (0x0101, 0xFFFF), (0x00FF, 0x00FF), (0x0200, 0)] {
        let mut side = hear_request(&NegotiateRequest {
            min_version,
            max_version,
            ..request()
        });
        let answer = answer(&mut side);
        assert_eq!(answer.status, Status::NOT_SUPPORTED);
        assert_eq!((answer.min_version, answer.max_version), (0x0100, 0x0100));
        assert_eq!((answer.negotiated_version, answer.credits_granted), (0, 0));
        let (min, max) = (min_version, max_version);
        assert_eq!(side.end, Some(Violation::Version { min, max }));
    }
}

#[test]
fn the_refusal_is_sent_before_the_connection_ends() {
    let mut side = Side::new(Config::new(Role::Server));
    side.completes = false;
    side.start();
    let mut message = Vec::new();
    let other = NegotiateRequest {
        min_version: 0x0200,
        max_version: 0x0200,
        ..request()
    };
    other.encode(&mut message);
    side.receive(&message);
    assert_eq!((side.out.len(), side.end), (1, None));
    let id = side.last.expect("it is sent");
    side.core.sent(side.now, id, &mut side.effects);
    side.settle(&[]);
    let (min, max) = (0x0200, 0x0200);
    assert_eq!(side.end, Some(Violation::Version { min, max }));
}

#[test]
fn versions_above_and_below_ours_may_be_offered_with_it() {
    let mut side = hear_request(&NegotiateRequest {
        min_version: 0,
        max_version: 0xFFFF,
        ..request()
    });
    assert_eq!(answer(&mut side).status, Status::SUCCESS);
}

#[test]
fn a_request_below_the_least_ends_the_connection() {
    let field = |name, value| Some(Violation::Field { name, value });
    let no_credits = NegotiateRequest {
        credits_requested: 0,
        ..request()
    };
    let short_receives = NegotiateRequest {
        max_receive_size: 127,
        ..request()
    };
    let short_messages = NegotiateRequest {
        max_fragmented_size: 131_071,
        ..request()
    };
    assert_eq!(hear_request(&no_credits).end, field("CreditsRequested", 0));
    assert_eq!(
        hear_request(&short_receives).end,
        field("MaxReceiveSize", 127)
    );
    assert_eq!(
        hear_request(&short_messages).end,
        field("MaxFragmentedSize", 131_071)
    );
}

#[test]
fn any_preferred_send_size_leaves_a_receive_that_is_long_enough() {
    let cases = [
        (0, 128),
        (127, 128),
        (129, 129),
        (8192, 8192),
        (u32::MAX, 8192),
    ];
    for (preferred_send_size, expected) in cases {
        let side = hear_request(&NegotiateRequest {
            preferred_send_size,
            ..request()
        });
        let sizes = side.ready.expect("it is negotiated");
        assert_eq!(sizes.max_receive_size, expected, "{preferred_send_size}");
    }
}

#[test]
fn a_response_that_cannot_be_ends_the_connection() {
    let change = |change: fn(&mut NegotiateResponse)| {
        let mut response = response();
        change(&mut response);
        hear_response(&response).end
    };
    let cases: [(fn(&mut NegotiateResponse), _, _); 7] = [
        (
            |it| it.negotiated_version = 0x0101,
            "NegotiatedVersion",
            0x0101,
        ),
        (|it| it.negotiated_version = 0, "NegotiatedVersion", 0),
        (|it| it.max_receive_size = 127, "MaxReceiveSize", 127),
        (
            |it| it.max_fragmented_size = 131_071,
            "MaxFragmentedSize",
            131_071,
        ),
        (|it| it.credits_granted = 0, "CreditsGranted", 0),
        (|it| it.credits_requested = 0, "CreditsRequested", 0),
        (
            |it| it.preferred_send_size = 8193,
            "PreferredSendSize",
            8193,
        ),
    ];
    for (wrong, name, value) in cases {
        assert_eq!(change(wrong), Some(Violation::Field { name, value }));
    }
    let status = change(|response| response.status = Status::NOT_SUPPORTED);
    assert_eq!(status, Some(Violation::Refused(Status::NOT_SUPPORTED)));
}

#[test]
fn a_message_that_is_cut_short_ends_the_connection() {
    let (mut asks, mut answers) = (Vec::new(), Vec::new());
    request().encode(&mut asks);
    response().encode(&mut answers);
    for (role, message) in [(Role::Server, asks), (Role::Client, answers)] {
        for length in 0..message.len() {
            let mut side = Side::new(Config::new(role));
            side.start();
            side.receive(&message[..length]);
            let is_malformed = matches!(side.end, Some(Violation::Malformed(_)));
            assert!(is_malformed, "{role:?} {length}");
        }
    }
}

#[test]
fn nothing_is_granted_before_receives_are_posted() {
    let mut side = Side::new(Config::new(Role::Server));
    side.start();
    side.posts = false;
    let mut message = Vec::new();
    request().encode(&mut message);
    side.receive(&message);
    assert_eq!((side.out.len(), side.ready), (0, None));
    assert_eq!(side.asked, 11);
    side.post(4);
    assert_eq!(answer(&mut side).credits_granted, 4);
}

/// The result for a peer that requests the maximum of everything.
const MAXIMUM: Negotiated = Negotiated {
    max_send_size: 8192,
    max_receive_size: 8192,
    max_fragmented_send_size: u32::MAX,
    max_fragmented_receive_size: 1 << 20,
    max_read_write_size: 8 << 20,
};

#[test]
fn a_request_for_the_maximum_gets_the_configured_sizes() {
    let mut side = hear_request(&NegotiateRequest {
        min_version: 0,
        max_version: u16::MAX,
        credits_requested: u16::MAX,
        preferred_send_size: u32::MAX,
        max_receive_size: u32::MAX,
        max_fragmented_size: u32::MAX,
    });
    assert_eq!(side.ready, Some(MAXIMUM));
    assert_eq!(answer(&mut side).credits_granted, 255);
}

#[test]
fn a_response_with_the_maximum_gets_the_configured_sizes() {
    let side = hear_response(&NegotiateResponse {
        min_version: u16::MAX,
        max_version: u16::MAX,
        credits_requested: u16::MAX,
        credits_granted: u16::MAX,
        max_read_write_size: u32::MAX,
        preferred_send_size: 8192,
        max_receive_size: u32::MAX,
        max_fragmented_size: u32::MAX,
        ..response()
    });
    assert_eq!((side.ready, side.end), (Some(MAXIMUM), None));
}

#[test]
fn a_server_may_do_no_one_sided_operations_and_send_nothing_by_choice() {
    let side = hear_response(&NegotiateResponse {
        min_version: 0,
        max_version: 0,
        max_read_write_size: 0,
        preferred_send_size: 0,
        ..response()
    });
    let sizes = side.ready.expect("it is negotiated");
    assert_eq!(
        (sizes.max_read_write_size, sizes.max_receive_size),
        (0, 128)
    );
}

/// Any configuration that the protocol allows.
fn config(role: Role) -> impl Strategy<Value = Config> {
    let credits = (1_u16.., 1_u16..);
    let sizes = (
        128_u32..100_000,
        128_u32..100_000,
        131_072_u32..,
        any::<u32>(),
    );
    (credits, sizes).prop_map(move |(credits, sizes)| Config {
        send_credit_target: credits.0,
        receive_credit_max: credits.1,
        max_send_size: sizes.0,
        max_receive_size: sizes.1,
        max_fragmented_size: sizes.2,
        max_read_write_size: sizes.3,
        ..Config::new(role)
    })
}

proptest! {
    #[test]
    fn any_two_sides_agree(client in config(Role::Client), server in config(Role::Server)) {
        let wanted = (client.clone(), server.clone());
        let (mut client, mut server) = connected(client, server);
        let sizes = (client.ready.expect("sizes"), server.ready.expect("sizes"));
        prop_assert!(sizes.0.max_send_size <= sizes.1.max_receive_size);
        prop_assert!(sizes.1.max_send_size <= sizes.0.max_receive_size);
        prop_assert!(sizes.0.max_receive_size <= wanted.0.max_receive_size);
        prop_assert!(sizes.1.max_receive_size <= wanted.1.max_receive_size);
        prop_assert!(sizes.0.max_read_write_size <= sizes.1.max_read_write_size);
        prop_assert_eq!(sizes.0.max_fragmented_send_size, wanted.1.max_fragmented_size);
        prop_assert_eq!(sizes.1.max_fragmented_send_size, wanted.0.max_fragmented_size);
        let message = vec![5; 131_072];
        client.send(&message, None);
        run(&mut client, &mut server);
        server.send(&message, None);
        run(&mut client, &mut server);
        prop_assert_eq!((client.got.len(), server.got.len()), (1, 1));
    }
}
