//! Injected faults happen on demand and leave nothing behind.

mod harness;

use harness::{Location, piece};
use smbeam_rdma::{Event, Exposed, Failure, Sink, WorkId};

#[test]
fn a_lost_completion_comes_with_the_end() {
    let location = Location::new("lost=1".parse().expect("faults"));
    let (mut client, mut server) = location.pair(4, 100);
    client.send(1, b"lost");
    client.pair.flush();
    assert_eq!(server.expect_received(), b"lost", "only its completion is");
    assert!(client.poll().is_none());
    client.pair.disconnect();
    let (events, failure) = client.end();
    assert_eq!(failure, Failure::Disconnected);
    let is_flushed =
        |event: &Event| matches!(event, Event::Sent(WorkId(1), _, Err(Failure::Flushed)));
    assert!(events.iter().any(is_flushed), "{events:?}");
}

#[test]
fn a_wrong_key_is_refused() {
    let location = Location::new("key=1".parse().expect("faults"));
    let (mut client, mut server) = location.pair(4, 100);
    let memory = Exposed::ToWrite(ring::Region::from(vec![0; 10]));
    let remote = client.pair.expose(memory).expect("space");
    client.send(1, b"go");
    client.pair.flush();
    assert_eq!(server.expect_received(), b"go");
    server
        .pair
        .post_write(WorkId(1), vec![piece(b"0123456789")], &[remote]);
    let event = server.next();
    assert!(matches!(
        event,
        Event::Written(_, _, Err(Failure::RemoteAccess))
    ));
    assert_eq!(server.end().1, Failure::RemoteAccess);
}

#[test]
fn a_torn_read_brings_half_and_fails() {
    let location = Location::new("torn=1".parse().expect("faults"));
    let (mut client, mut server) = location.pair(4, 100);
    let memory = Exposed::ToRead(ring::Source::from(ring::Region::from(
        b"0123456789".to_vec(),
    )));
    let remote = client.pair.expose(memory).expect("space");
    client.send(1, b"go");
    client.pair.flush();
    assert_eq!(server.expect_received(), b"go");
    let sink = Sink::Region(ring::Region::from(vec![b'-'; 10]));
    server.pair.post_read(WorkId(1), sink, 0..10, &[remote]);
    let Event::Read(_, sink, Err(Failure::Device(_))) = server.next() else {
        panic!("a READ that fails");
    };
    assert_eq!(sink.bytes(), b"01234-----");
    assert!(matches!(server.end().1, Failure::Device(_)));
}

#[test]
fn a_connection_ends_after_a_number_of_operations() {
    let location = Location::new("disconnect=3".parse().expect("faults"));
    let (mut client, mut server) = location.pair(8, 100);
    for id in 1..=5 {
        client.send(id, b"x");
        client.pair.flush();
    }
    for id in 1..=3 {
        client.expect_sent(id);
    }
    let mut events = Vec::new();
    client.pair.poll(&mut events);
    let ids = client
        .events
        .iter()
        .chain(&events)
        .filter_map(|event| match event {
            Event::Sent(WorkId(id), _, Err(Failure::Flushed)) => Some(*id),
            _ => None,
        });
    assert_eq!(ids.collect::<Vec<_>>(), [4, 5]);
    for _ in 1..=3 {
        assert_eq!(server.expect_received(), b"x");
    }
    assert_eq!(server.end().1, Failure::PeerDisconnected);
}
