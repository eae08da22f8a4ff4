//! Two peers of the emulation, and the consequences when one violates the protocol.

mod harness;

use std::io::Write as _;
use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileExt as _;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use harness::{End, Location, pattern, piece};
use ring::{Part, Region, Source};
use smbeam_rdma::emulated::{Emulated, Faults};
use smbeam_rdma::{
    Attributes, Event, Exposed, Failure, Piece, Provider, RemoteRegion, Sink, Slots, WorkId,
};

#[test]
fn messages_arrive_whole_and_in_order() {
    let location = Location::new(Faults::default());
    let (mut client, mut server) = location.pair(64, 4096);
    assert_eq!(client.pair.local_addr(), server.pair.peer_addr());
    assert_eq!(client.pair.peer_addr(), server.pair.local_addr());
    for round in 0..20 {
        let messages: Vec<_> = (0..40)
            .map(|len| pattern(len * 100, round + len as u64))
            .collect();
        for (id, message) in messages.iter().enumerate() {
            let (head, rest) = message.split_at(message.len() / 3);
            let head = {
                let mut slot = client.slots.take().unwrap_or_else(|| {
                    Slots::new(1, 4096).expect("memory").take().expect("a slot")
                });
                slot[..head.len()].copy_from_slice(head);
                Piece::Slot(slot, 0..head.len())
            };
            let shared = Rc::new(Part::Source(Source::from(Region::from(rest.to_vec()))));
            let pieces = vec![
                head,
                Piece::Shared(Rc::clone(&shared), 0..rest.len() / 2),
                Piece::Shared(Rc::clone(&shared), rest.len() / 2..rest.len()),
            ];
            client.pair.post_send(WorkId(id as u64), pieces, None);
        }
        client.pair.flush();
        for message in &messages {
            assert_eq!(server.expect_received(), *message);
            server.post_receive();
        }
        server.pair.flush();
        for id in 0..messages.len() {
            client.expect_sent(id as u64);
        }
        assert!(client.poll().is_none());
    }
}

#[test]
fn more_than_the_socket_takes_waits() {
    let location = Location::new(Faults::default());
    let (mut client, mut server) = location.pair(400, 60_000);
    let message = pattern(60_000, 1);
    for id in 0..400 {
        client.send(id, &message);
    }
    client.pair.flush();
    let (mut sent, mut received) = (0, 0);
    while sent < 400 || received < 400 {
        while let Some(event) = server.poll() {
            match event {
                Event::Received(slot, bytes) => assert_eq!(slot[..bytes], message),
                other => panic!("{other:?}"),
            }
            received += 1;
        }
        while let Some(event) = client.poll() {
            assert!(matches!(event, Event::Sent(WorkId(id), _, Ok(())) if id == sent));
            sent += 1;
        }
    }
}

/// The client exposes memory and sends the description to the server.
fn expose(client: &mut End, server: &mut End, memory: Exposed) -> RemoteRegion {
    let remote = client.pair.expose(memory).expect("space");
    client.send(99, b"go");
    client.pair.flush();
    client.expect_sent(99);
    assert_eq!(server.expect_received(), b"go");
    server.post_receive();
    remote
}

fn region(len: usize) -> Exposed {
    Exposed::ToWrite(Region::from(vec![0; len]))
}

fn written(event: Event) -> Vec<u8> {
    match event {
        Event::Revoked(_, Exposed::ToWrite(region)) => region.into_vec().expect("a vector"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn memory_is_written_and_read_on_the_far_side() {
    let location = Location::new(Faults::default());
    let (mut client, mut server) = location.pair(8, 100);
    let bytes = pattern(3 << 20, 7);
    let remote = expose(&mut client, &mut server, region(3 << 20));
    // Three pieces into four segments with other boundaries.
    let part = Rc::new(Part::Bytes(bytes.clone()));
    let cuts = [0, 1, 1 << 20, 3 << 20];
    let pieces = cuts
        .windows(2)
        .map(|cut| Piece::Shared(Rc::clone(&part), cut[0]..cut[1]));
    let segment = |start: u64, length| RemoteRegion {
        address: remote.address + start,
        length,
        ..remote
    };
    let segments = [
        segment(0, 10),
        segment(10, 0),
        segment(10, (2 << 20) - 10),
        segment(2 << 20, 1 << 20),
    ];
    server
        .pair
        .post_write(WorkId(5), pieces.collect(), &segments);
    let event = server.next();
    assert!(matches!(event, Event::Written(WorkId(5), pieces, Ok(())) if pieces.len() == 3));
    client.pair.revoke(remote.key);
    client.pair.flush();
    assert!(server.poll().is_none());
    assert!(written(client.next()) == bytes, "the written bytes");
    // The other direction.
    let shared: Arc<[u8]> = bytes.clone().into();
    let source = Exposed::ToRead(Source::from(Arc::clone(&shared)));
    let remote = expose(&mut client, &mut server, source);
    let sink = Sink::Region(Region::from(vec![0; 2000]));
    let segments = [
        RemoteRegion {
            length: 300,
            ..remote
        },
        RemoteRegion {
            address: remote.address + 5000,
            length: 5000,
            ..remote
        },
    ];
    server.pair.post_read(WorkId(6), sink, 500..1500, &segments);
    let Event::Read(WorkId(6), sink, Ok(())) = server.next() else {
        panic!("a READ ends");
    };
    assert_eq!(sink.bytes()[500..800], bytes[..300]);
    assert_eq!(sink.bytes()[800..1500], bytes[5000..5700]);
    assert_eq!(sink.bytes()[..500], [0; 500]);
}

/// A file with bytes, and the bytes.
fn file(len: usize) -> (std::fs::File, Vec<u8>) {
    let bytes = pattern(len, 11);
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(&bytes).expect("space");
    (file, bytes)
}

#[test]
fn files_are_written_from_where_they_are() {
    let location = Location::new(Faults::default());
    let (mut client, mut server) = location.pair(8, 100);
    let (file, bytes) = file(1_000_001);
    let wholes = [(0, 1_000_000), (4096, 65_536), (12_345, 700_001)];
    for (offset, length) in wholes {
        let remote = expose(&mut client, &mut server, region(length));
        let segments = [
            RemoteRegion {
                length: 9,
                ..remote
            },
            RemoteRegion {
                address: remote.address + 9,
                length: remote.length - 9,
                ..remote
            },
        ];
        let pair = &mut server.pair;
        assert!(pair.write_file(file.as_fd(), offset, length, &segments));
        client.pair.revoke(remote.key);
        client.pair.flush();
        assert!(server.poll().is_none(), "it is no operation to wait for");
        let start = offset as usize;
        assert!(written(client.next()) == bytes[start..start + length]);
    }
}

#[test]
fn a_file_that_ends_is_not_written_and_the_connection_stays() {
    let location = Location::new(Faults::default());
    let (mut client, mut server) = location.pair(8, 100);
    let (file, _) = file(100_000);
    let remote = expose(&mut client, &mut server, region(100_001));
    let pair = &mut server.pair;
    for (offset, length) in [
        (0, 100_001),
        (1, 100_000),
        (90_000, 70_000),
        (u64::MAX, 70_000),
    ] {
        assert!(!pair.write_file(file.as_fd(), offset, length, &[remote]));
    }
    file.set_len(0).expect("it is cut");
    assert!(!pair.write_file(file.as_fd(), 0, 100_000, &[remote]));
    // A pipe has no pages.
    let (reader, _writer) = std::io::pipe().expect("a pipe");
    assert!(!pair.write_file(reader.as_fd(), 0, 100_000, &[remote]));
    client.pair.revoke(remote.key);
    client.pair.flush();
    assert!(server.poll().is_none());
    assert!(written(client.next()) == vec![0; 100_001]);
}

/// The kernel's copy stops at the end of the file, where an access of the processor would end the
/// process.
#[test]
fn a_file_may_be_truncated_while_it_is_written() {
    const BYTES: usize = 4 << 20;
    let location = Location::new(Faults::default());
    let (mut client, mut server) = location.pair(8, 100);
    let (file, bytes) = file(BYTES);
    let remote = expose(&mut client, &mut server, region(BYTES));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                file.set_len(BYTES as u64 / 2).expect("it is cut");
                file.write_all_at(&bytes[BYTES / 2..], BYTES as u64 / 2)
                    .expect("it is written");
            }
        });
        for _ in 0..200 {
            let pair = &mut server.pair;
            pair.write_file(file.as_fd(), 0, BYTES, &[remote]);
        }
        is_over.store(true, Ordering::SeqCst);
    });
    let pair = &mut server.pair;
    assert!(pair.write_file(file.as_fd(), 0, BYTES, &[remote]));
    client.pair.revoke(remote.key);
    client.pair.flush();
    assert!(server.poll().is_none());
    assert!(written(client.next()) == bytes, "the last bytes");
}

#[test]
fn a_file_is_written_only_to_permitted_memory() {
    let location = Location::new(Faults::default());
    let (mut client, mut server) = location.pair(8, 100);
    let (file, _) = file(100_001);
    let remote = expose(&mut client, &mut server, region(100_000));
    let key = remote.key ^ 1;
    let wrong = RemoteRegion { key, ..remote };
    let pair = &mut server.pair;
    assert!(!pair.write_file(file.as_fd(), 0, 100_000, &[wrong]));
    assert_eq!(server.end().1, Failure::RemoteAccess);
    let pair = &mut server.pair;
    assert!(!pair.write_file(file.as_fd(), 0, 100_000, &[remote]));
    let (events, _) = client.end();
    let mut events = events.into_iter();
    let revoked = events.find(|event| matches!(event, Event::Revoked(..)));
    assert!(written(revoked.expect("it comes back")) == vec![0; 100_000]);
}

#[test]
fn a_send_gives_a_region_back() {
    let location = Location::new(Faults::default());
    let (mut client, mut server) = location.pair(8, 100);
    let remote = expose(&mut client, &mut server, region(10));
    server
        .pair
        .post_write(WorkId(1), vec![piece(b"0123456789")], &[remote]);
    server
        .pair
        .post_send(WorkId(2), vec![piece(b"done")], Some(remote.key));
    server.pair.flush();
    assert!(matches!(server.next(), Event::Written(..)));
    server.expect_sent(2);
    assert_eq!(written(client.next()), b"0123456789");
    assert_eq!(client.expect_received(), b"done");
    // The memory is out of reach, so this revoke has no effect.
    client.pair.revoke(remote.key);
    client.pair.flush();
    assert!(client.poll().is_none());
    server
        .pair
        .post_write(WorkId(3), vec![piece(b"x")], &[remote]);
    let event = server.next();
    assert!(matches!(
        event,
        Event::Written(_, _, Err(Failure::RemoteAccess))
    ));
    assert_eq!(server.end().1, Failure::RemoteAccess);
    assert_eq!(client.end().1, Failure::PeerDisconnected);
}

#[test]
fn a_region_revoked_by_both_peers_returns_once() {
    let location = Location::new(Faults::default());
    let (mut client, mut server) = location.pair(8, 100);
    let remote = expose(&mut client, &mut server, region(10));
    client.pair.revoke(remote.key);
    client.pair.flush();
    server
        .pair
        .post_send(WorkId(2), vec![piece(b"done")], Some(remote.key));
    server.pair.flush();
    assert!(matches!(client.next(), Event::Revoked(key, _) if key == remote.key));
    assert_eq!(client.expect_received(), b"done");
    server.expect_sent(2);
    assert!(server.poll().is_none());
    assert!(client.poll().is_none());
    client.send(1, b"still here");
    client.pair.flush();
    assert_eq!(server.expect_received(), b"still here");
}

#[test]
fn a_violation_ends_the_connection_and_returns_all_memory() {
    type Break = fn(&mut End, RemoteRegion);
    let write = |server: &mut End, remote: RemoteRegion| {
        let bytes = vec![1; remote.length as usize];
        server
            .pair
            .post_write(WorkId(1), vec![piece(&bytes)], &[remote]);
    };
    let breaks: [(&str, Break); 4] = [
        ("wrong key", |server, remote| {
            let key = remote.key ^ 1;
            server.pair.post_write(
                WorkId(1),
                vec![piece(b"x")],
                &[RemoteRegion { key, ..remote }],
            );
        }),
        ("reads a region to write", |server, remote| {
            let sink = Sink::Region(Region::from(vec![0; 10]));
            server.pair.post_read(WorkId(1), sink, 0..10, &[remote]);
        }),
        ("invalidates an unknown key", |server, remote| {
            let key = remote.key ^ 1;
            server
                .pair
                .post_send(WorkId(1), vec![piece(b"x")], Some(key));
        }),
        ("beyond the end", |server, remote| {
            let length = 101;
            let bytes = [1; 101];
            let remote = RemoteRegion { length, ..remote };
            server
                .pair
                .post_write(WorkId(1), vec![piece(&bytes)], &[remote]);
        }),
    ];
    for (name, break_rule) in breaks {
        let location = Location::new(Faults::default());
        let (mut client, mut server) = location.pair(8, 100);
        let remote = expose(&mut client, &mut server, region(100));
        write(
            &mut server,
            RemoteRegion {
                length: 50,
                ..remote
            },
        );
        assert!(
            matches!(server.next(), Event::Written(_, _, Ok(()))),
            "{name}"
        );
        break_rule(&mut server, remote);
        server.send(7, b"never");
        server.pair.flush();
        let (events, failure) = server.end();
        assert_eq!(failure, Failure::RemoteAccess, "{name}");
        let unused = |event: &&Event| matches!(event, Event::Unused(_));
        assert_eq!(
            events.iter().filter(unused).count(),
            8,
            "{name}: receives come back"
        );
        let is_denied = |event: &Event| {
            matches!(
                event,
                Event::Written(WorkId(1), _, Err(Failure::RemoteAccess))
                    | Event::Read(WorkId(1), _, Err(Failure::RemoteAccess))
                    | Event::Sent(WorkId(1), _, Err(Failure::RemoteAccess))
            )
        };
        assert!(events.iter().any(is_denied), "{name}: {events:?}");
        let is_flushed =
            |event: &Event| matches!(event, Event::Sent(WorkId(7), _, Err(Failure::Flushed)));
        drop(client.end());
        assert!(
            events.iter().any(is_flushed) || server.poll().is_some_and(|event| is_flushed(&event)),
            "{name}: a later SEND is flushed"
        );
    }
}

#[test]
fn a_message_without_a_receive_ends_the_connection() {
    let location = Location::new(Faults::default());
    let (mut client, mut server) = location.pair(2, 100);
    for id in 0..3 {
        client.send(id, b"x");
    }
    client.pair.flush();
    client.expect_sent(0);
    client.expect_sent(1);
    let event = client.next();
    assert!(matches!(
        event,
        Event::Sent(WorkId(2), _, Err(Failure::ReceiverNotReady))
    ));
    assert_eq!(client.end().1, Failure::ReceiverNotReady);
    assert_eq!(server.expect_received(), b"x");
    assert_eq!(server.expect_received(), b"x");
    assert_eq!(server.end().1, Failure::PeerDisconnected);
}

#[test]
fn a_message_that_is_too_long_ends_the_connection() {
    let location = Location::new(Faults::default());
    let (mut client, mut server) = location.pair(2, 100);
    client.send(0, &[1; 101]);
    client.pair.flush();
    assert_eq!(server.end().1, Failure::TooLong);
    client.expect_sent(0);
    assert_eq!(client.end().1, Failure::PeerDisconnected);
}

#[test]
fn disconnecting_returns_all_memory_when_the_peer_has_released_it() {
    let location = Location::new(Faults::default());
    let (mut client, mut server) = location.pair(4, 100);
    let remote = expose(&mut client, &mut server, region(10));
    client.pair.disconnect();
    assert!(client.poll().is_none(), "the server may still write");
    server
        .pair
        .post_write(WorkId(1), vec![piece(b"x")], &[remote]);
    let event = server.next();
    assert!(matches!(event, Event::Written(_, _, Err(_))));
    server.end();
    let (events, failure) = client.end();
    assert_eq!(failure, Failure::Disconnected);
    assert!(
        events
            .iter()
            .any(|event| matches!(event, Event::Revoked(key, _) if *key == remote.key))
    );
}

#[test]
fn exposed_memory_outlives_its_queue_pair_until_the_peer_has_released_it() {
    let location = Location::new(Faults::default());
    let is_over = AtomicBool::new(false);
    let address = location.listener.local_addr();
    std::thread::scope(|scope| {
        let (sender, exposed) = std::sync::mpsc::channel();
        let (start, may_start) = std::sync::mpsc::channel();
        let (provider, is_over) = (&location.provider, &is_over);
        let client = scope.spawn(move || {
            let mut bytes = [0; 100];
            ring::lend_mut(&mut bytes, |lent| {
                let pair = provider.connect(address, &Attributes::default());
                let mut client = End::new(pair.expect("it listens"), 4, 100);
                client.pair.flush();
                assert!(matches!(client.next(), Event::Connected));
                may_start.recv().expect("the server is connected");
                let remote = client.pair.expose(Exposed::ToWrite(lent)).expect("space");
                client.pair.flush();
                drop(client);
                sender.send(remote).expect("the server waits");
            });
            assert!(
                is_over.load(Ordering::SeqCst),
                "the server has released the memory"
            );
            bytes
        });
        let request = loop {
            match location.listener.accept().expect("it listens") {
                Some(request) => break request,
                None => std::thread::yield_now(),
            }
        };
        let pair = request.accept(&Attributes::default(), Vec::new());
        let mut server = End::new(pair.expect("accepted"), 4, 100);
        assert!(matches!(server.next(), Event::Connected));
        start.send(()).expect("the client waits");
        let remote = exposed.recv().expect("the client exposes");
        (0..1000).for_each(|_| std::thread::yield_now());
        // The server finds out when it polls, which it does before the next write.
        is_over.store(true, Ordering::SeqCst);
        server
            .pair
            .post_write(WorkId(1), vec![piece(&[9; 100])], &[remote]);
        assert!(matches!(server.next(), Event::Written(_, _, Err(_))));
        drop(server);
        assert_eq!(client.join().expect("no panic"), [0; 100]);
    });
}

#[test]
fn a_refused_peer_learns_it() {
    let location = Location::new(Faults::default());
    let address = location.listener.local_addr();
    let attributes = Attributes::default();
    let client = location
        .provider
        .connect(address, &attributes)
        .expect("it listens");
    let mut client = End::new(client, 4, 100);
    client.post_receive();
    client.pair.flush();
    let request = location.listener.accept().expect("it listens");
    drop(request.expect("a request"));
    let (events, failure) = client.end();
    assert!(matches!(failure, Failure::Refused(_)), "{failure}");
    assert!(matches!(events[..], [Event::Unused(_)]), "{events:?}");
    assert!(location.listener.accept().expect("it listens").is_none());
}

#[test]
fn a_port_has_one_listener_and_a_dead_one_is_replaced() {
    let directory = tempfile::tempdir().expect("a directory");
    let provider = Emulated::new(directory.path(), Faults::default()).expect("a provider");
    let address: SocketAddr = "127.0.0.1:5445".parse().expect("an address");
    let socket = directory.path().join("5445.sock");
    let refuses = || {
        let connected = provider.connect(address, &Attributes::default());
        let refused = connected.expect_err("no listener");
        assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
        assert_eq!(refused.to_string(), socket.display().to_string());
    };
    refuses();
    let listener = provider.listen(address).expect("a free port");
    let taken = provider.listen(address).expect_err("it is taken");
    assert_eq!(taken.kind(), std::io::ErrorKind::AddrInUse);
    assert!(listener.accept().expect("it listens").is_none());
    // A killed process leaves its socket behind.
    let held = directory.path().join("held");
    std::fs::hard_link(&socket, &held).expect("a link");
    drop(listener);
    std::fs::rename(&held, &socket).expect("a rename");
    refuses();
    drop(provider.listen(address).expect("the listener has ended"));
    // For a moment, the kernel may hold the descriptors of a killed process, which then listens.
    let _held = std::os::unix::net::UnixListener::bind(&socket).expect("a free path");
    let listener = provider.listen(address).expect("the listener has ended");
    assert_eq!(listener.local_addr(), address);
    provider
        .connect(address, &Attributes::default())
        .expect("a listener");
}
