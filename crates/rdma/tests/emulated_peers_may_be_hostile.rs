//! Peers of the emulation that write to the socket themselves and send wrong messages.

mod harness;

use std::io::{Read, Write};

use harness::{End, Location, piece};
use smbeam_rdma::emulated::Faults;
use smbeam_rdma::{Attributes, Event, Exposed, Failure, RemoteRegion, Slots, WorkId};
use socket2::{Domain, SockAddr, Socket, Type};

const HELLO: u8 = 1;
const POSTED: u8 = 2;
const SEND: u8 = 3;
const SEND_AND_INVALIDATE: u8 = 4;
const ANNOUNCE_TO_WRITE: u8 = 6;
const WITHDRAW: u8 = 7;
const WITHDRAWN: u8 = 8;

fn message(kind: u8, posted: u32, key: u32, length: u32, address: u64) -> Vec<u8> {
    let mut bytes = vec![kind, 0, 0, 0];
    bytes.extend(posted.to_ne_bytes());
    bytes.extend(key.to_ne_bytes());
    bytes.extend(length.to_ne_bytes());
    bytes.extend(address.to_ne_bytes());
    bytes
}

/// A connected hostile peer, and the server.
fn hostile_peer(location: &Location) -> (Socket, End) {
    let port = location.listener.local_addr().port();
    let path = location.directory.path().join(format!("{port}.sock"));
    let peer = Socket::new(Domain::UNIX, Type::SEQPACKET, None).expect("a socket");
    let address = SockAddr::unix(path).expect("an address");
    peer.connect(&address).expect("a listener");
    let slots = Slots::new(4, 100).expect("memory");
    let receives = std::iter::from_fn(|| slots.take()).collect();
    let request = location.listener.accept().expect("it listens");
    let attributes = Attributes::default();
    let pair = request.expect("the peer").accept(&attributes, receives);
    let server = End {
        pair: pair.expect("a socket"),
        slots,
        events: Vec::new(),
    };
    (peer, server)
}

fn hello(mut peer: &Socket, server: &mut End) {
    let hello = message(HELLO, 4, 1, 0, 0);
    peer.write_all(&hello).expect("space");
    assert!(matches!(server.next(), Event::Connected));
}

#[test]
fn wrong_messages_end_their_connection_only() {
    let long = {
        let mut long = message(SEND, 0, 0, 0, 0);
        long.extend([0; 101]);
        long
    };
    let behind = {
        let mut behind = message(POSTED, 0, 0, 0, 0);
        behind.push(0);
        behind
    };
    let region = message(ANNOUNCE_TO_WRITE, 0, 1, 10, 4096);
    let wrong: [(&str, bool, Vec<Vec<u8>>); 14] = [
        ("no header", false, vec![vec![HELLO]]),
        ("wrong version", false, vec![message(HELLO, 4, 2, 0, 0)]),
        ("no hello", false, vec![message(POSTED, 4, 0, 0, 0)]),
        (
            "a message before hello",
            false,
            vec![message(SEND, 4, 0, 0, 0)],
        ),
        ("hello twice", true, vec![message(HELLO, 0, 1, 0, 0)]),
        ("unknown kind", true, vec![message(200, 0, 0, 0, 0)]),
        (
            "half a header",
            true,
            vec![message(SEND, 0, 0, 0, 0)[..20].to_vec()],
        ),
        ("longer than the receive", true, vec![long]),
        ("bytes after a header", true, vec![behind]),
        (
            "too many receives",
            true,
            vec![message(POSTED, u32::MAX, 0, 0, 0)],
        ),
        (
            "more messages than receives",
            true,
            vec![message(SEND, 0, 0, 0, 0); 5],
        ),
        (
            "invalidates an unknown key",
            true,
            vec![message(SEND_AND_INVALIDATE, 0, 7, 0, 0)],
        ),
        (
            "confirms a withdrawal that never was",
            true,
            vec![message(WITHDRAWN, 0, 7, 0, 0)],
        ),
        ("one key twice", true, vec![region.clone(), region]),
    ];
    let location = Location::new(Faults::default());
    for (name, is_connected, messages) in wrong {
        let (mut socket, mut server) = hostile_peer(&location);
        if is_connected {
            hello(&socket, &mut server);
        }
        for message in messages {
            socket.write_all(&message).expect("space");
        }
        let (events, failure) = server.end();
        assert!(
            matches!(
                failure,
                Failure::Protocol(_) | Failure::TooLong | Failure::ReceiverNotReady
            ),
            "{name}: {failure}"
        );
        let slots = |event: &&Event| matches!(event, Event::Unused(_) | Event::Received(..));
        assert_eq!(
            events.iter().filter(slots).count(),
            4,
            "{name}: receives come back"
        );
        let mut left = [0; 1000];
        while socket.read(&mut left).is_ok_and(|count| count > 0) {}
    }
    // Other connections are not affected.
    let (mut client, mut server) = location.pair(4, 100);
    client.send(1, b"still here");
    client.pair.flush();
    assert_eq!(server.expect_received(), b"still here");
}

#[test]
fn unmapped_memory_cannot_be_written() {
    let location = Location::new(Faults::default());
    let (mut socket, mut server) = hostile_peer(&location);
    hello(&socket, &mut server);
    let remote = RemoteRegion {
        address: 4096,
        key: 1,
        length: 100,
    };
    let region = message(ANNOUNCE_TO_WRITE, 0, 1, 100, remote.address);
    socket.write_all(&region).expect("space");
    assert!(server.poll().is_none());
    server
        .pair
        .post_write(WorkId(1), vec![piece(&[1; 100])], &[remote]);
    let event = server.next();
    assert!(
        matches!(event, Event::Written(_, _, Err(Failure::RemoteAccess))),
        "{event:?}"
    );
    assert_eq!(server.end().1, Failure::RemoteAccess);
}

#[test]
fn a_peer_that_takes_no_answers_is_not_answered_for_ever() {
    let location = Location::new(Faults::default());
    let (mut socket, mut server) = hostile_peer(&location);
    hello(&socket, &mut server);
    socket.set_nonblocking(true).expect("an option");
    let withdraw = message(WITHDRAW, 0, 1, 0, 0);
    let failure = loop {
        let is_full = socket.write(&withdraw).is_err();
        if let Some(Event::Disconnected(failure)) = server.poll() {
            break failure;
        }
        assert!(!is_full || server.pair.arm() != smbeam_rdma::Wait::No);
    };
    assert_eq!(failure, Failure::Protocol("too many unread answers".into()));
}

#[test]
fn a_peer_that_vanishes_gives_everything_back() {
    let location = Location::new(Faults::default());
    let (socket, mut server) = hostile_peer(&location);
    hello(&socket, &mut server);
    let memory = Exposed::ToWrite(ring::Region::from(vec![0; 10]));
    let remote = server.pair.expose(memory).expect("space");
    server.pair.flush();
    drop(socket);
    let (events, failure) = server.end();
    assert_eq!(failure, Failure::PeerDisconnected);
    let is_back = |event: &Event| matches!(event, Event::Revoked(key, _) if *key == remote.key);
    assert!(events.iter().any(is_back), "{events:?}");
}
