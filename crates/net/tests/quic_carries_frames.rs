//! QUIC between two sides of ours: all promises of a stream, over both drivers.

use std::net::{Ipv4Addr, Shutdown, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use ring::{Config, Handle, Io, Part, PoolConfig, Region, Runtime};
use smbeam_net::Stream;
use smbeam_net::quic::{Congestion, Incoming, Listener, ListenerEvent, Server, Settings, connect};

#[path = "quic/relay.rs"]
mod relay;
#[path = "quic/trust.rs"]
mod trust;

use relay::{Relay, Weather};

/// Memory of buffers that there is.
const POOL_BYTES: usize = 32 << 20;

/// Runs a scenario over a driver and checks that nothing is left when the runtime ends.
fn run<F: AsyncFn(Handle)>(io: Io, scenario: F) {
    let buffers = PoolConfig {
        total_bytes: POOL_BYTES,
        ..PoolConfig::default()
    };
    let config = Config {
        io,
        buffers,
        ..Config::default()
    };
    let runtime = Runtime::new(&config).expect("the driver is available");
    let handle = runtime.handle();
    runtime.block_on(scenario(handle.clone()));
    drop(runtime);
    assert_eq!(handle.pending_operations(), 0);
    assert_eq!(handle.pool().buffers_out(), 0);
}

macro_rules! over_both_drivers {
    ($($name:ident),+ $(,)?) => {
        mod uring { $(
            #[test]
            fn $name() { super::run(ring::Io::Uring, super::$name); }
        )+ }
        mod epoll { $(
            #[test]
            fn $name() { super::run(ring::Io::Epoll, super::$name); }
        )+ }
    };
}

over_both_drivers!(
    bytes_of_any_size_arrive_whole,
    the_receive_window_is_small_until_the_peer_is_trusted,
    a_bad_network_changes_nothing,
    what_was_sent_before_the_end_arrives,
    the_end_of_one_direction_leaves_the_other,
    a_peer_that_vanishes_is_an_error,
    a_closed_port_is_known_at_once,
    other_protocols_are_refused,
    a_client_connects_again_for_validation,
    a_refused_client_receives_the_refusal,
    another_worker_takes_a_client_over,
    a_client_that_gives_up_leaves_nothing,
    a_dropped_receive_tears_the_stream,
    a_reader_that_waits_stops_the_sender,
    each_side_has_its_own_settings,
    buffers_come_back_when_the_peer_has_acknowledged_them,
    a_peer_that_acknowledges_nothing_leaves_buffers_to_others,
    a_server_that_was_killed_is_missed_when_the_next_one_runs,
);

fn server(settings: &Settings) -> Arc<Server> {
    let tls = trust::server_config(smbeam_net::tls::ALPN);
    let certificates = Box::new(move || Arc::clone(&tls));
    Server::new(settings.clone(), certificates, &[7; 32]).expect("TLS 1.3")
}

/// Sockets of a port, each with a listener: one for each worker.
fn listen(handle: &Handle, settings: &Settings, workers: u16) -> (Vec<Listener>, SocketAddr) {
    let server = server(settings);
    let mut address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let mut sockets = Vec::new();
    for _ in 0..workers {
        use socket2::{Domain, Socket, Type};
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).expect("a socket");
        socket.set_reuse_port(true).expect("an option");
        socket.bind(&address.into()).expect("a port");
        let socket = UdpSocket::from(socket);
        address = socket.local_addr().expect("bound");
        sockets.push(socket);
    }
    ring::steer(&sockets[0], workers.into()).expect("a group");
    let wrap = |(worker, socket)| {
        Listener::new(handle, socket, &server, worker, workers).expect("a socket")
    };
    let listeners = (0..workers).zip(sockets).map(wrap).collect();
    (listeners, address)
}

async fn next_incoming(listener: &Listener) -> Incoming {
    match listener.next_event().await {
        ListenerEvent::Incoming(incoming) => incoming,
        other => panic!("{other:?}"),
    }
}

async fn client(handle: &Handle, address: SocketAddr, settings: &Settings) -> Stream {
    let tls = trust::client_config(smbeam_net::tls::ALPN);
    let stream = connect(handle, address, "smbeam.test", tls, settings);
    let stream = stream.await.expect("connect");
    // The server learns of the stream by its first bytes.
    let (result, _) = stream.send(vec![Part::Bytes(b"hello".to_vec())]).await;
    result.expect("send");
    stream
}

/// Both ends of a connection, and what listens.
async fn pair(handle: &Handle, settings: &Settings) -> (Stream, Stream, Listener) {
    let (mut listeners, address) = listen(handle, settings, 1);
    let listener = listeners.pop().expect("one");
    let (client, server) = meet(handle, &listener, address, settings).await;
    (client, server, listener)
}

async fn meet(
    handle: &Handle,
    listener: &Listener,
    address: SocketAddr,
    settings: &Settings,
) -> (Stream, Stream) {
    let (own, settings) = (handle.clone(), settings.clone());
    let connecting = handle.spawn(async move { client(&own, address, &settings).await });
    let server = next_incoming(listener)
        .await
        .accept()
        .await
        .expect("accept");
    let client = connecting.await.expect("no panic");
    assert_eq!(&*receive(&server, 5).await, b"hello");
    assert_eq!(client.peer_addr().expect("an address"), address);
    (client, server)
}

/// Reproducible bytes (splitmix64).
fn bytes(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    };
    (0..length).map(|_| next() as u8).collect()
}

/// Receives exactly this number of bytes, half of them as chunks.
async fn receive(stream: &Stream, length: usize) -> Vec<u8> {
    let mut received = Vec::new();
    while received.len() < length / 2 + 1 && received.len() < length {
        let chunk = stream.recv().await.expect("recv");
        assert!(!chunk.is_empty(), "the stream continues");
        received.extend_from_slice(&chunk);
    }
    assert!(received.len() <= length, "no more than was sent");
    let rest = Region::from(vec![0; length - received.len()]);
    let range = 0..rest.len();
    let (result, rest) = stream.recv_into_region(rest, range).await;
    result.expect("recv_into_region");
    received.extend_from_slice(&rest);
    received
}

/// Messages of many sizes, one at a time, each answered by itself.
async fn talk(handle: &Handle, client: Stream, server: Stream, seed: u64) {
    let sizes = [1, 2, 100, 1_199, 1_200, 16_384, 16_385, 100_000, 3 << 20];
    let echoing = handle.spawn(async move {
        for (round, size) in sizes.into_iter().enumerate() {
            let message = receive(&server, size).await;
            assert_eq!(message, bytes(size, seed + round as u64));
            let (head, tail) = message.split_at(size / 3);
            let parts = vec![Part::Bytes(head.to_vec()), Part::Bytes(tail.to_vec())];
            let (result, parts) = server.send(parts).await;
            result.expect("send");
            assert_eq!(parts.len(), 2);
        }
        server
    });
    for (round, size) in sizes.into_iter().enumerate() {
        let message = bytes(size, seed + round as u64);
        let (result, _) = client.send(vec![Part::Bytes(message.clone())]).await;
        result.expect("send");
        assert_eq!(receive(&client, size).await, message);
    }
    drop(echoing.await.expect("no panic"));
}

async fn bytes_of_any_size_arrive_whole(handle: Handle) {
    let settings = Settings::default();
    let (client, server, _listener) = pair(&handle, &settings).await;
    talk(&handle, client, server, 1).await;
}

/// Bug: a client without a login made the server hold 16 MiB.
async fn the_receive_window_is_small_until_the_peer_is_trusted(handle: Handle) {
    const WINDOW: u32 = 64 << 10;
    let settings = Settings {
        send_window: WINDOW,
        ..Settings::default()
    };
    let (mut listeners, address) = listen(&handle, &Settings::default(), 1);
    let listener = listeners.pop().expect("one");
    let (own, sent) = (handle.clone(), settings.clone());
    let connecting = handle.spawn(async move { client(&own, address, &sent).await });
    let incoming = next_incoming(&listener).await;
    let server = incoming.accept_or(WINDOW, |_| ()).await.expect("accept");
    let client = connecting.await.expect("no panic");
    let message = bytes(1 << 20, 7);
    let parts = vec![Part::Bytes(message.clone())];
    let sending = handle.spawn(async move { (client.send(parts).await.0, client) });
    handle.sleep(Duration::from_millis(200)).await;
    assert!(
        !sending.is_finished(),
        "the server holds two windows at most"
    );
    // The server reads nothing: only the wider window lets the client send the rest.
    server.trust();
    let (result, client) = sending.await.expect("no panic");
    result.expect("send");
    let expected = [&b"hello"[..], &message].concat();
    assert_eq!(receive(&server, expected.len()).await, expected);
    drop(client);
}

async fn a_bad_network_changes_nothing(handle: Handle) {
    let settings = Settings::default();
    let (listeners, address) = listen(&handle, &settings, 1);
    let weather = Weather {
        lose_one_in: 50,
        swap_one_in: 20,
        repeat_one_in: 30,
    };
    let relay = Relay::start(address, weather);
    let (client, server) = meet(&handle, &listeners[0], relay.address, &settings).await;
    talk(&handle, client, server, 2).await;
}

async fn what_was_sent_before_the_end_arrives(handle: Handle) {
    let settings = Settings::default();
    let (client, server, listener) = pair(&handle, &settings).await;
    let message = bytes(5 << 20, 3);
    let (result, _) = server.send(vec![Part::Bytes(message.clone())]).await;
    result.expect("send");
    server.shutdown(Shutdown::Both).expect("a connection");
    let closing = handle.spawn(async move { listener.close().await });
    assert_eq!(receive(&client, message.len()).await, message);
    assert!(client.recv().await.expect("the end").is_empty());
    assert!(client.recv().await.expect("the end again").is_empty());
    let (result, _) = client.recv_into_region(vec![0; 1].into(), 0..1).await;
    let error = result.expect_err("the end");
    assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof);
    closing.await.expect("all have heard the end");
}

async fn the_end_of_one_direction_leaves_the_other(handle: Handle) {
    let settings = Settings::default();
    let (client, server, _listener) = pair(&handle, &settings).await;
    client.shutdown(Shutdown::Write).expect("a connection");
    assert!(server.recv().await.expect("the end").is_empty());
    let (result, _) = server.send(vec![Part::Bytes(vec![7; 100_000])]).await;
    result.expect("send");
    assert_eq!(receive(&client, 100_000).await, vec![7; 100_000]);
}

async fn a_peer_that_vanishes_is_an_error(handle: Handle) {
    let settings = Settings {
        idle_timeout: Duration::from_secs(4),
        keep_alive: Some(Duration::from_millis(400)),
        ..Settings::default()
    };
    let (listeners, address) = listen(&handle, &settings, 1);
    let relay = Relay::start(address, Weather::default());
    let (client, server) = meet(&handle, &listeners[0], relay.address, &settings).await;
    // Alive as long as there are answers, whether or not there is something to say.
    let silent = handle.timeout(Duration::from_secs(6), client.recv());
    assert!(silent.await.is_err());
    drop(relay);
    for stream in [&client, &server] {
        let error = stream.recv().await.expect_err("the peer is unreachable");
        assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
        let (result, _) = stream.send(vec![Part::Bytes(vec![1])]).await;
        assert!(result.is_err());
    }
}

async fn a_closed_port_is_known_at_once(handle: Handle) {
    let free = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = free.local_addr().expect("bound");
    drop(free);
    let tls = trust::client_config(smbeam_net::tls::ALPN);
    let settings = Settings::default();
    let refused = connect(&handle, address, "smbeam.test", tls, &settings).await;
    let error = refused.expect_err("no listener");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
}

async fn other_protocols_are_refused(handle: Handle) {
    let settings = Settings::default();
    let (listeners, address) = listen(&handle, &settings, 1);
    for alpn in [&b"h3"[..], &[]] {
        let own = handle.clone();
        let connecting = handle.spawn(async move {
            let tls = trust::client_config(alpn);
            connect(&own, address, "smbeam.test", tls, &Settings::default()).await
        });
        assert!(next_incoming(&listeners[0]).await.accept().await.is_err());
        assert!(connecting.await.expect("no panic").is_err());
    }
    let (client, server) = meet(&handle, &listeners[0], address, &settings).await;
    talk(&handle, client, server, 4).await;
}

async fn a_client_connects_again_for_validation(handle: Handle) {
    let settings = Settings::default();
    let (listeners, address) = listen(&handle, &settings, 1);
    let own = handle.clone();
    let connecting = handle.spawn(async move { client(&own, address, &Settings::default()).await });
    let first = next_incoming(&listeners[0]).await;
    assert!(first.may_be_validated());
    let peer = first.peer();
    first.request_validation();
    let mut second = next_incoming(&listeners[0]).await;
    // A busy client may have sent its first packet again.
    while second.may_be_validated() {
        second.request_validation();
        second = next_incoming(&listeners[0]).await;
    }
    assert_eq!(second.peer(), peer);
    let server = second.accept().await.expect("accept");
    let client = connecting.await.expect("no panic");
    assert_eq!(&*receive(&server, 5).await, b"hello");
    talk(&handle, client, server, 5).await;
}

async fn a_refused_client_receives_the_refusal(handle: Handle) {
    let settings = Settings::default();
    let (listeners, address) = listen(&handle, &settings, 1);
    let own = handle.clone();
    let connecting = handle.spawn(async move {
        let tls = trust::client_config(smbeam_net::tls::ALPN);
        connect(&own, address, "smbeam.test", tls, &Settings::default()).await
    });
    next_incoming(&listeners[0]).await.refuse();
    assert!(connecting.await.expect("no panic").is_err());
}

async fn another_worker_takes_a_client_over(handle: Handle) {
    let settings = Settings::default();
    let (listeners, address) = listen(&handle, &settings, 2);
    // Repeated and reordered first packets take the same way.
    let weather = Weather {
        lose_one_in: 0,
        swap_one_in: 8,
        repeat_one_in: 2,
    };
    let relay = Relay::start(address, weather);
    let through = relay.address;
    for _ in 0..8 {
        let own = handle.clone();
        let connecting =
            handle.spawn(async move { client(&own, through, &Settings::default()).await });
        let (server, carrying) = take_over(&handle, &listeners).await;
        let client = connecting.await.expect("no panic");
        assert_eq!(&*receive(&server, 5).await, b"hello");
        let (result, _) = server.send(vec![Part::Bytes(vec![9; 50_000])]).await;
        result.expect("send");
        assert_eq!(receive(&client, 50_000).await, vec![9; 50_000]);
        carrying.iter().for_each(ring::JoinHandle::abort);
    }
}

/// Accepts the first connection of either listener at the other, and forwards its retransmissions.
async fn take_over(handle: &Handle, listeners: &[Listener]) -> (Stream, [ring::JoinHandle<()>; 2]) {
    let (sender, mut receiver) = ring::mailbox(None);
    let carry = |here: usize| {
        let (listeners, sender, own) = (listeners.to_vec(), sender.clone(), handle.clone());
        handle.spawn(async move {
            loop {
                match listeners[here].next_event().await {
                    ListenerEvent::Retransmission(there, handover) => {
                        assert_eq!(there, 1 - here);
                        drop(listeners[there].take_over(handover));
                    }
                    ListenerEvent::Incoming(incoming) => {
                        let handover = incoming.hand_over(1 - here).expect("space");
                        let Some(incoming) = listeners[1 - here].take_over(handover) else {
                            continue;
                        };
                        let sender = sender.clone();
                        own.spawn(async move {
                            if incoming.accept().await.is_ok_and(|stream| {
                                KEPT.with_borrow_mut(|kept| kept.push(stream));
                                true
                            }) {
                                sender.send(()).expect("the test waits");
                            }
                        });
                    }
                }
            }
        })
    };
    let carrying = [carry(0), carry(1)];
    receiver.recv().await.expect("a stream");
    let stream = KEPT.with_borrow_mut(Vec::pop).expect("just put there");
    (stream, carrying)
}

thread_local! {
    /// A stream cannot go through a mailbox: it stays on its thread.
    static KEPT: std::cell::RefCell<Vec<Stream>> = const { std::cell::RefCell::new(Vec::new()) };
}

async fn a_client_that_gives_up_leaves_nothing(handle: Handle) {
    let settings = Settings::default();
    let (listeners, address) = listen(&handle, &settings, 1);
    for _ in 0..20 {
        let own = handle.clone();
        let connecting = handle.spawn(async move {
            let tls = trust::client_config(smbeam_net::tls::ALPN);
            connect(&own, address, "smbeam.test", tls, &Settings::default()).await
        });
        let incoming = next_incoming(&listeners[0]).await;
        connecting.abort();
        // It has no stream, so that this waits until it is forgotten.
        let accepting = handle.timeout(Duration::from_millis(5), incoming.accept());
        assert!(!matches!(accepting.await, Ok(Ok(_))));
    }
    listeners[0].close().await;
}

async fn a_dropped_receive_tears_the_stream(handle: Handle) {
    let settings = Settings::default();
    let (client, server, _listener) = pair(&handle, &settings).await;
    let (result, _) = client.send(vec![Part::Bytes(vec![1; 10])]).await;
    result.expect("send");
    let buffer = handle.pool().take(1 << 20).expect("space");
    let filling = server.recv_into(buffer, 0..1 << 20);
    let filling = handle.timeout(Duration::from_millis(20), filling).await;
    assert!(filling.is_err());
    let error = server.recv().await.expect_err("torn");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionAborted);
}

async fn a_reader_that_waits_stops_the_sender(handle: Handle) {
    let settings = Settings {
        receive_window: 1 << 20,
        send_window: 1 << 20,
        ..Settings::default()
    };
    let (client, server, _listener) = pair(&handle, &settings).await;
    let message = bytes(8 << 20, 6);
    let sent = message.clone();
    let sending = handle.spawn(async move {
        let (result, _) = client.send(vec![Part::Bytes(sent)]).await;
        result.expect("send");
        client
    });
    handle.sleep(Duration::from_millis(200)).await;
    assert!(
        !sending.is_finished(),
        "no more than the windows is in flight"
    );
    assert_eq!(receive(&server, message.len()).await, message);
    drop(sending.await.expect("no panic"));
}

async fn each_side_has_its_own_settings(handle: Handle) {
    for [ours, theirs] in [
        [Congestion::Bbr, Congestion::NewReno],
        [Congestion::NewReno, Congestion::Cubic],
        [Congestion::Cubic, Congestion::Bbr],
    ] {
        let settings = |congestion, max_datagram| Settings {
            congestion,
            max_datagram,
            ..Settings::default()
        };
        let (listeners, address) = listen(&handle, &settings(theirs, 1400), 1);
        let own = settings(ours, 1300);
        let (client, server) = meet(&handle, &listeners[0], address, &own).await;
        talk(&handle, client.clone(), server.clone(), 8).await;
        let paths = [&client, &server].map(|stream| stream.path().expect("one of QUIC"));
        assert_eq!(paths.map(|path| path.congestion), [ours, theirs]);
        let [here, there] = paths.map(|path| path.datagram);
        assert!(here <= 1300 && there <= 1400, "{here} {there}");
        assert!(paths.iter().all(|path| path.sent > 0 && path.window > 0));
    }
}

/// A buffer of the pool with a message.
fn lend(handle: &Handle, message: &[u8]) -> Part {
    let mut buffer = handle.pool().take(message.len()).expect("space");
    buffer[..message.len()].copy_from_slice(message);
    Part::Buffer(buffer, 0..message.len())
}

async fn buffers_come_back_when_the_peer_has_acknowledged_them(handle: Handle) {
    let settings = Settings::default();
    let (client, server, _listener) = pair(&handle, &settings).await;
    let message = bytes(1 << 20, 7);
    for _ in 0..4 {
        let head = Part::Bytes(b"head".to_vec());
        let (result, rest) = server.send(vec![head, lend(&handle, &message)]).await;
        result.expect("send");
        assert_eq!(rest.len(), 1, "the head was copied, the buffer was not");
    }
    assert_eq!(handle.pool().buffers_out(), 4);
    let all = [b"head", &message[..]].concat().repeat(4);
    assert!(
        receive(&client, all.len()).await == all,
        "in order and whole"
    );
    while handle.pool().buffers_out() > 0 {
        handle.sleep(Duration::from_millis(1)).await;
    }
}

async fn a_peer_that_acknowledges_nothing_leaves_buffers_to_others(handle: Handle) {
    let settings = Settings {
        send_window: 1 << 30,
        receive_window: 1 << 30,
        ..Settings::default()
    };
    let (listeners, address) = listen(&handle, &settings, 1);
    let relay = Relay::start(address, Weather::default());
    let (client, server) = meet(&handle, &listeners[0], relay.address, &settings).await;
    drop(relay);
    // More than the pool has.
    let message = vec![9; 1 << 20];
    for _ in 0..POOL_BYTES / message.len() + 8 {
        let (result, _) = server.send(vec![lend(&handle, &message)]).await;
        result.expect("the window has space");
    }
    let kept = handle.pool().buffers_out() * message.len();
    assert!(kept > 0 && kept <= POOL_BYTES / 2, "{kept}");
    drop((client, server, listeners));
}

async fn a_server_that_was_killed_is_missed_when_the_next_one_runs(handle: Handle) {
    // Silence tells nobody anything here.
    let settings = Settings {
        idle_timeout: Duration::from_secs(3600),
        keep_alive: None,
        ..Settings::default()
    };
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let next = socket.try_clone().expect("a descriptor");
    let address = socket.local_addr().expect("bound");
    let first = server(&settings);
    let killed = std::thread::spawn(move || {
        let runtime = Runtime::new(&Config::default()).expect("a driver");
        let handle = runtime.handle();
        runtime.block_on(async {
            let listener = Listener::new(&handle, socket, &first, 0, 1);
            let listener = listener.expect("a socket");
            let stream = next_incoming(&listener)
                .await
                .accept()
                .await
                .expect("accept");
            assert_eq!(&*receive(&stream, 5).await, b"hello");
            // Neither says goodbye.
            std::mem::forget((listener, stream));
        });
        std::mem::forget((handle, runtime));
    });
    let client = client(&handle, address, &settings).await;
    while !killed.is_finished() {
        handle.sleep(Duration::from_millis(1)).await;
    }
    killed.join().expect("no panic");
    let listener = Listener::new(&handle, next, &server(&settings), 0, 1).expect("a socket");
    let (result, _) = client.send(vec![Part::Bytes(vec![1; 1000])]).await;
    result.expect("nothing is known yet");
    let end = handle.timeout(Duration::from_secs(60), client.recv());
    let error = end
        .await
        .expect("a result")
        .expect_err("the connection has ended");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    drop(listener);
}
