//! The scenarios. Each makes a separate connection and returns a line about its result.

use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ring::{Part, Region, Source};
use smbeam_rdma::{Event, Exposed, Failure, Piece, RemoteRegion, Sink, WorkId};

use crate::ends::{End, Location, RECEIVE_BYTES, pattern, piece};

pub(crate) type Scenario = fn(&Location) -> String;

pub(crate) const ALL: [(&str, Scenario); 18] = [
    ("messages arrive whole and in order", messages),
    ("a poll during a wait takes no wake-up away", polls),
    ("regions of the peer are written", writes),
    ("buffers of the pool are written", writes_to_pool),
    ("regions of the peer are read", reads),
    ("more reads than the peer answers at one time", many_reads),
    ("a send invalidates a region", invalidates),
    ("regions are exposed and revoked", repeats_exposures),
    ("a wrong key ends the connection", wrong_key),
    ("a key that was revoked ends the connection", stale_key),
    ("access beyond the end ends the connection", beyond_the_end),
    ("writing a region to read ends the connection", wrong_right),
    ("no receive ends the connection", no_receive),
    ("disconnecting returns all memory", disconnects),
    ("many connections at one time", many_connections),
    ("dropping releases all memory", drops),
    ("no listener", no_listener),
    ("a request is refused", refused),
];

fn messages(location: &Location) -> String {
    let (mut client, mut server) = location.pair();
    let limits = client.limits();
    let start = Instant::now();
    for round in 0..50_u64 {
        let messages: Vec<_> = (0..16)
            .map(|index| pattern(1 + index * (RECEIVE_BYTES - 1) / 15, round + index as u64))
            .collect();
        for (id, message) in messages.iter().enumerate() {
            let (head, rest) = message.split_at(message.len() / 3);
            let mut slot = client.slots.take().unwrap_or_else(|| {
                let slots = smbeam_rdma::Slots::new(1, RECEIVE_BYTES).expect("memory");
                slots.take().expect("a slot")
            });
            slot[..head.len()].copy_from_slice(head);
            let rest = Rc::new(Part::Bytes(rest.to_vec()));
            let len = rest.bytes().len();
            let pieces = vec![
                Piece::Slot(slot, 0..head.len()),
                Piece::Shared(Rc::clone(&rest), 0..len / 2),
                Piece::Shared(rest, len / 2..len),
            ];
            client.pair.post_send(WorkId(id as u64), pieces, None);
        }
        client.pair.flush();
        for message in &messages {
            assert_eq!(server.expect_received(), *message);
        }
        for id in 0..messages.len() {
            client.expect_sent(id as u64);
        }
        server.send(round, b"seen", None);
        server.expect_sent(round);
        assert_eq!(client.expect_received(), b"seen");
    }
    let per = start.elapsed() / (50 * 17);
    format!("{limits:?}, {per:.1?} a message")
}

fn polls(location: &Location) -> String {
    let (mut client, mut server) = location.pair();
    client.arm();
    for round in 0..20 {
        // All rounds but the first without arming again.
        server.send(round, b"x", None);
        server.expect_sent(round);
        client.wait();
        let mut events = Vec::new();
        while events.is_empty() {
            client.pair.poll(&mut events);
        }
        let [Event::Received(_, 1)] = &events[..] else {
            panic!("{events:?}");
        };
    }
    String::new()
}

/// The client exposes memory and sends the description to the server, which then accesses it.
fn expose(client: &mut End, server: &mut End, memory: Exposed) -> RemoteRegion {
    let remote = client.pair.expose(memory).expect("space");
    client.send(99, b"go", None);
    client.expect_sent(99);
    assert_eq!(server.expect_received(), b"go");
    remote
}

fn region(len: usize) -> Exposed {
    Exposed::ToWrite(Region::from(vec![0; len]))
}

#[track_caller]
fn expect_revoked(event: Event, key: u32) -> Vec<u8> {
    match event {
        Event::Revoked(revoked, memory) => {
            assert_eq!(revoked, key);
            match memory {
                Exposed::ToWrite(region) => region.into_vec().expect("a vector"),
                Exposed::BufferToWrite(buffer) => buffer.to_vec(),
                Exposed::ToRead(source) => source.to_vec(),
            }
        }
        other => panic!("{other:?}"),
    }
}

fn segment(remote: RemoteRegion, start: u32, length: u32) -> RemoteRegion {
    RemoteRegion {
        address: remote.address + u64::from(start),
        length,
        ..remote
    }
}

fn revoke(client: &mut End, server: &mut End, key: u32) -> Vec<u8> {
    client.pair.revoke(key);
    client.pair.flush();
    expect_revoked(client.next_with(server), key)
}

/// The server sends a message after its writes, so the client has the written bytes.
fn send_done(client: &mut End, server: &mut End) {
    server.send(7, b"done", None);
    loop {
        match server.next() {
            Event::Sent(WorkId(7), _, Ok(())) => break,
            Event::Written(_, _, Ok(())) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(client.expect_received(), b"done");
}

fn writes(location: &Location) -> String {
    let (mut client, mut server) = location.pair();
    let bytes = pattern(3 << 20, 7);
    let remote = expose(&mut client, &mut server, region(3 << 20));
    // Five pieces into four segments with other boundaries.
    let part = Rc::new(Part::Bytes(bytes.clone()));
    let cuts = [0, 1, 5000, 5001, 1 << 20, 3 << 20];
    let pieces = cuts
        .windows(2)
        .map(|cut| Piece::Shared(Rc::clone(&part), cut[0]..cut[1]));
    let segments = [
        segment(remote, 0, 10),
        segment(remote, 10, 0),
        segment(remote, 10, (2 << 20) - 10),
        segment(remote, 2 << 20, 1 << 20),
    ];
    server
        .pair
        .post_write(WorkId(5), pieces.collect(), &segments);
    server.pair.flush();
    send_done(&mut client, &mut server);
    let written = revoke(&mut client, &mut server, remote.key);
    assert!(written == bytes, "the written bytes");
    String::new()
}

fn writes_to_pool(location: &Location) -> String {
    let (mut client, mut server) = location.pair();
    let pool = location.runtime.handle().pool();
    let len = 1 << 20;
    let start = Instant::now();
    let rounds = 40;
    for round in 0..rounds {
        let mut source = pool.take(len).expect("a buffer");
        let bytes = pattern(if round == 0 { len } else { 4096 }, round);
        source[..bytes.len()].copy_from_slice(&bytes);
        let target = Exposed::BufferToWrite(pool.take(len).expect("a buffer"));
        let remote = expose(&mut client, &mut server, target);
        let piece = Piece::Shared(Rc::new(Part::Buffer(source, 0..len)), 0..len);
        server.pair.post_write(WorkId(5), vec![piece], &[remote]);
        server.pair.flush();
        send_done(&mut client, &mut server);
        let written = revoke(&mut client, &mut server, remote.key);
        assert!(written[..bytes.len()] == bytes, "the written bytes");
    }
    let rate = (rounds as f64 * len as f64) / 1e6 / start.elapsed().as_secs_f64();
    format!("{rate:.0} MB/s, one at a time, copies and checks included")
}

fn reads(location: &Location) -> String {
    let (mut client, mut server) = location.pair();
    let pool = location.runtime.handle().pool();
    let bytes = pattern(1 << 20, 3);
    let shared: Arc<[u8]> = bytes.clone().into();
    let start = Instant::now();
    let rounds = 40;
    for round in 0..rounds {
        let source = Exposed::ToRead(Source::from(Arc::clone(&shared)));
        let remote = expose(&mut client, &mut server, source);
        let sink = Sink::Buffer(pool.take(1 << 20).expect("a buffer"));
        let segments = [
            segment(remote, 0, 100),
            segment(remote, 200, 0),
            segment(remote, 100, (1 << 20) - 100),
        ];
        server
            .pair
            .post_read(WorkId(round), sink, 0..1 << 20, &segments);
        server.pair.flush();
        let Event::Read(WorkId(id), sink, Ok(())) = server.next() else {
            panic!("a READ ends");
        };
        assert_eq!(id, round);
        assert!(sink.bytes()[..1 << 20] == bytes, "the read bytes");
        let given_back = revoke(&mut client, &mut server, remote.key);
        assert!(given_back == bytes, "reading changes nothing");
    }
    let rate = (rounds << 20) as f64 / 1e6 / start.elapsed().as_secs_f64();
    format!("{rate:.0} MB/s, one at a time, checks included")
}

fn many_reads(location: &Location) -> String {
    let (mut client, mut server) = location.pair();
    let bytes = pattern(100_000, 3);
    let source = Source::from(Region::from(bytes.clone()));
    let remote = expose(&mut client, &mut server, Exposed::ToRead(source));
    let count = 200;
    for id in 0..count {
        let sink = Sink::Region(Region::from(vec![0; 5000]));
        let segment = segment(remote, id as u32 * 400, 5000);
        server.pair.post_read(WorkId(id), sink, 0..5000, &[segment]);
    }
    server.pair.flush();
    for expected in 0..count {
        let Event::Read(WorkId(id), sink, Ok(())) = server.next() else {
            panic!("a READ ends");
        };
        assert_eq!(id, expected);
        let start = id as usize * 400;
        assert!(sink.bytes() == &bytes[start..start + 5000]);
    }
    revoke(&mut client, &mut server, remote.key);
    format!("{} at one time", server.limits().reads)
}

fn invalidates(location: &Location) -> String {
    let (mut client, mut server) = location.pair();
    if !client.limits().remote_invalidation {
        return "the device cannot".to_owned();
    }
    for round in 0..50 {
        let remote = expose(&mut client, &mut server, region(10));
        server
            .pair
            .post_write(WorkId(1), vec![piece(b"0123456789")], &[remote]);
        server.send(2, b"done", Some(remote.key));
        assert!(matches!(server.next(), Event::Written(_, _, Ok(()))));
        server.expect_sent(2);
        let written = expect_revoked(client.next(), remote.key);
        assert_eq!(written, b"0123456789", "round {round}");
        assert_eq!(client.expect_received(), b"done");
        // The region is revoked already, so this has no effect.
        client.pair.revoke(remote.key);
        client.pair.flush();
        client.send(3, b"still here", None);
        client.expect_sent(3);
        assert_eq!(server.expect_received(), b"still here");
    }
    String::new()
}

fn repeats_exposures(location: &Location) -> String {
    let (mut client, mut server) = location.pair();
    let count = 300;
    let start = Instant::now();
    let mut keys = Vec::new();
    for round in 0..count {
        let remote = client.pair.expose(region(4096)).expect("space");
        keys.push(remote.key);
        if round % 3 == 2 {
            for key in keys.drain(..) {
                client.pair.revoke(key);
            }
            client.pair.flush();
        }
    }
    for _ in 0..count {
        let event = client.next_with(&mut server);
        assert!(matches!(event, Event::Revoked(..)), "{event:?}");
    }
    let per = start.elapsed() / count;
    let many: Vec<_> = (0..100)
        .map(|_| client.pair.expose(region(100)).expect("space").key)
        .collect();
    client.pair.flush();
    client.pair.disconnect();
    let (events, failure) = client.end(&mut server);
    assert_eq!(failure, Failure::Disconnected);
    let revoked = |key: &u32| {
        let is_it = |event: &&Event| matches!(event, Event::Revoked(it, _) if it == key);
        events.iter().filter(is_it).count()
    };
    assert!(many.iter().all(|key| revoked(key) == 1));
    format!("{per:.1?} each")
}

/// The server violates the rules. Returns the failures of both ends.
fn ends_badly(client: &mut End, server: &mut End, key: u32) -> String {
    server.pair.flush();
    let (events, failure) = server.end(client);
    assert_ne!(failure, Failure::Disconnected);
    let result = |event: &Event| match event {
        Event::Written(_, _, result) | Event::Read(_, _, result) => Some(format!("{result:?}")),
        _ => None,
    };
    let results: Vec<_> = events.iter().filter_map(result).collect();
    let unused = |event: &&Event| matches!(event, Event::Unused(_));
    assert_eq!(events.iter().filter(unused).count(), 32, "{events:?}");
    let (events, client_failure) = client.end(server);
    for event in events {
        if let Event::Revoked(revoked, memory) = event
            && revoked == key
        {
            let bytes = expect_revoked(Event::Revoked(revoked, memory), key);
            assert!(bytes.iter().all(|byte| *byte == 0), "nothing was written");
        }
    }
    format!("{results:?}; server: {failure}; client: {client_failure}")
}

fn wrong_key(location: &Location) -> String {
    let mut notes = Vec::new();
    for is_read in [false, true] {
        let (mut client, mut server) = location.pair();
        let remote = expose(&mut client, &mut server, region(4096));
        let key = remote.key ^ 0x5555_5500;
        let wrong = RemoteRegion { key, ..remote };
        if is_read {
            let sink = Sink::Region(Region::from(vec![0; 10]));
            server.pair.post_read(WorkId(1), sink, 0..10, &[wrong]);
        } else {
            let write = vec![piece(b"0123456789")];
            server.pair.post_write(WorkId(1), write, &[wrong]);
        }
        notes.push(ends_badly(&mut client, &mut server, remote.key));
    }
    notes.join(" | ")
}

fn stale_key(location: &Location) -> String {
    let (mut client, mut server) = location.pair();
    let remote = expose(&mut client, &mut server, region(4096));
    let mut held = revoke(&mut client, &mut server, remote.key);
    server
        .pair
        .post_write(WorkId(1), vec![piece(&[1; 4096])], &[remote]);
    let notes = ends_badly(&mut client, &mut server, remote.key);
    assert!(held.iter_mut().all(|byte| *byte == 0), "out of reach");
    notes
}

fn beyond_the_end(location: &Location) -> String {
    let (mut client, mut server) = location.pair();
    let remote = expose(&mut client, &mut server, region(4096));
    let length = 4097;
    let too_long = RemoteRegion { length, ..remote };
    let sink = Sink::Region(Region::from(vec![0; 4097]));
    server.pair.post_read(WorkId(1), sink, 0..4097, &[too_long]);
    ends_badly(&mut client, &mut server, remote.key)
}

fn wrong_right(location: &Location) -> String {
    let (mut client, mut server) = location.pair();
    let source = Source::from(Region::from(vec![0; 4096]));
    let remote = expose(&mut client, &mut server, Exposed::ToRead(source));
    server
        .pair
        .post_write(WorkId(1), vec![piece(&[1; 100])], &[remote]);
    ends_badly(&mut client, &mut server, remote.key)
}

fn no_receive(location: &Location) -> String {
    let (mut client, mut server) = location.pair();
    for id in 0..33 {
        client.pair.post_send(WorkId(id), vec![piece(b"x")], None);
    }
    client.pair.flush();
    let (events, failure) = client.end(&mut server);
    let sent = |event: &&Event| matches!(event, Event::Sent(_, _, Ok(())));
    let sent = events.iter().filter(sent).count();
    let (events, server_failure) = server.end(&mut client);
    let received = |event: &&Event| matches!(event, Event::Received(..));
    assert_eq!(events.iter().filter(received).count(), 32);
    format!("{sent} of 33 sent; client: {failure}; server: {server_failure}")
}

fn disconnects(location: &Location) -> String {
    let (mut client, mut server) = location.pair();
    let remote = expose(&mut client, &mut server, region(1 << 20));
    let bytes = vec![9; 1 << 20];
    for id in 0..10 {
        server
            .pair
            .post_write(WorkId(id), vec![piece(&bytes)], &[remote]);
    }
    server.pair.flush();
    client.pair.disconnect();
    let (events, failure) = client.end(&mut server);
    assert_eq!(failure, Failure::Disconnected);
    let revoked = |event: &&Event| matches!(event, Event::Revoked(..));
    assert_eq!(events.iter().filter(revoked).count(), 1);
    let (events, failure) = server.end(&mut client);
    let mut ids: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::Written(WorkId(id), _, _) => Some(*id),
            _ => None,
        })
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..10).collect::<Vec<_>>(), "each exactly once");
    server.send(50, b"late", None);
    let late = server.next();
    let is_flushed = matches!(late, Event::Sent(WorkId(50), _, Err(Failure::Flushed)));
    assert!(is_flushed, "{late:?}");
    format!("server: {failure}")
}

fn many_connections(location: &Location) -> String {
    let start = Instant::now();
    let mut pairs: Vec<_> = (0..30).map(|_| location.pair()).collect();
    for round in 0..3 {
        for (client, server) in &mut pairs {
            client.send(round, b"ping", None);
            client.expect_sent(round);
            assert_eq!(server.expect_received(), b"ping");
            server.send(round, b"pong", None);
            server.expect_sent(round);
            assert_eq!(client.expect_received(), b"pong");
        }
        // Every second connection ends; the others do not notice.
        let mut index = 0;
        pairs.retain(|_| {
            index += 1;
            index % 2 == 0
        });
    }
    assert_eq!(pairs.len(), 3);
    format!("{:.1?}", start.elapsed())
}

fn drops(location: &Location) -> String {
    let (mut client, mut server) = location.pair();
    let remote = expose(&mut client, &mut server, region(1 << 20));
    let pool = location.runtime.handle().pool();
    let out = pool.buffers_out();
    for id in 0..10 {
        let buffer = pool.take(1 << 20).expect("a buffer");
        let piece = Piece::Shared(Rc::new(Part::Buffer(buffer, 0..1 << 20)), 0..1 << 20);
        server.pair.post_write(WorkId(id), vec![piece], &[remote]);
    }
    server.pair.flush();
    drop(server);
    assert_eq!(pool.buffers_out(), out, "all buffers are free");
    let (events, failure) = client.end_alone();
    let revoked = |event: &&Event| matches!(event, Event::Revoked(..));
    assert_eq!(events.iter().filter(revoked).count(), 1);
    format!("client: {failure}")
}

fn no_listener(location: &Location) -> String {
    let port = location.listener.local_addr().port() ^ 1;
    let address = SocketAddr::new(location.listener.local_addr().ip(), port);
    let attributes = Location::attributes();
    if let Err(error) = location.provider.connect(address, &attributes) {
        return error.to_string();
    }
    let mut client = location.connect(address);
    client.post_receive();
    client.pair.flush();
    let (events, failure) = client.end_alone();
    assert!(matches!(events[..], [Event::Unused(_)]), "{events:?}");
    assert!(matches!(failure, Failure::Refused(_)), "{failure:?}");
    failure.to_string()
}

fn refused(location: &Location) -> String {
    let mut client = location.connect(location.listener.local_addr());
    client.post_receive();
    client.pair.flush();
    drop(location.request(&mut client));
    let (events, failure) = client.end_alone();
    assert!(matches!(events[..], [Event::Unused(_)]), "{events:?}");
    assert!(matches!(failure, Failure::Refused(_)), "{failure:?}");
    failure.to_string()
}

/// Longest time without the device.
const AWAY: Duration = Duration::from_secs(20);

/// The device is removed while both ends use it, and added again.
pub(crate) fn reset(location: Location, ip: IpAddr) -> String {
    let (mut client, mut server) = location.pair();
    let remote = expose(&mut client, &mut server, region(1 << 20));
    println!("ready: take the device away");
    let start = Instant::now();
    let mut posted = 0;
    let (events, failure) = loop {
        // Keep an operation in flight.
        let write = vec![piece(&[1; 100_000])];
        server.pair.post_write(WorkId(posted), write, &[remote]);
        server.pair.flush();
        posted += 1;
        match server.next_with(&mut client) {
            Event::Written(_, _, Ok(())) => std::thread::sleep(Duration::from_millis(5)),
            Event::Disconnected(failure) => break (Vec::new(), failure),
            other => {
                let (mut events, failure) = server.end_alone();
                events.insert(0, other);
                break (events, failure);
            }
        }
    };
    println!(
        "server, after {posted} writes: {failure}; {} events",
        events.len()
    );
    // Only a send detects that the peer has disappeared without a disconnect.
    client.send(1, b"ping?", None);
    let (events, failure) = client.end_alone();
    let revoked = |event: &&Event| matches!(event, Event::Revoked(key, _) if *key == remote.key);
    assert_eq!(events.iter().filter(revoked).count(), 1, "it comes back");
    println!("client: {failure}; {:.1?}", start.elapsed());
    drop((client, server));
    let Location {
        provider,
        listener,
        runtime,
        ..
    } = location;
    println!(
        "listener: {:?}",
        listener.accept().map(|request| request.is_some())
    );
    drop((listener, runtime));
    println!("all memory is released");
    // Addresses of an interface that is down still bind, and messages sent then are lost.
    std::thread::sleep(Duration::from_secs(3));
    loop {
        assert!(start.elapsed() < AWAY, "the device is back");
        std::thread::sleep(Duration::from_millis(100));
        let addresses = provider.addresses().unwrap_or_default();
        if addresses.iter().any(|(address, _)| *address == ip) {
            break;
        }
    }
    let location = Location::new(provider, SocketAddr::new(ip, 0)).expect("the device is back");
    messages(&location);
    format!("back after {:.1?}", start.elapsed())
}
