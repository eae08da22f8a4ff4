//! Frames over SMB Direct on emulated RDMA, with both peers in one process.

use std::cell::Cell;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

use rdma::emulated::{Emulated, Faults};
use rdma::{Attributes, Event, Listener, Piece, Provider, QueuePair, Slots, WorkId};
use ring::{Config, Handle, Interest, Io, Part, Readiness, Region, Runtime, Source};
use smbeam_net::Stream;
use smbeam_net::smbdirect::{self, Exposed, Settings};
use tempfile::TempDir;

struct Place {
    handle: Handle,
    provider: Emulated,
    listener: Box<dyn Listener>,
    /// The settings of both peers.
    settings: Cell<Settings>,
    _directory: TempDir,
}

impl Place {
    fn new(handle: &Handle, faults: &str) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let faults: Faults = faults.parse().expect("faults");
        let provider = Emulated::new(directory.path(), faults).expect("a provider");
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let listener = provider.listen(any).expect("a free port");
        Self {
            handle: handle.clone(),
            provider,
            listener,
            settings: Cell::default(),
            _directory: directory,
        }
    }

    async fn accept(&self) -> io::Result<smbdirect::Stream> {
        let readiness = Readiness::new(&self.handle, self.listener.descriptor())?;
        let request = loop {
            readiness.ready(Interest::Readable).await?;
            if let Some(request) = self.listener.accept()? {
                break request;
            }
        };
        smbdirect::Stream::accept(&self.handle, request, &self.settings.get()).await
    }

    async fn connect(&self) -> io::Result<smbdirect::Stream> {
        let address = self.listener.local_addr();
        let settings = self.settings.get();
        smbdirect::Stream::connect(&self.handle, &self.provider, address, &settings).await
    }

    async fn pair(self: &Rc<Self>) -> (Stream, Stream) {
        let (client, server) = self.both_ends().await;
        server.trust();
        (client, server.into())
    }

    async fn both_ends(self: &Rc<Self>) -> (Stream, smbdirect::Stream) {
        let place = Rc::clone(self);
        let server = self.handle.spawn(async move { place.accept().await });
        let client = self.connect().await;
        let server = server.await.expect("no panic").expect("the client speaks");
        let client = client.expect("the server speaks");
        (client.into(), server)
    }
}

/// Runs a scenario with both drivers, and checks that every buffer is free at the end.
fn run<F: AsyncFn(Rc<Place>)>(faults: &str, scenario: F) {
    for io in [Io::Uring, Io::Epoll] {
        let config = Config {
            io,
            ..Config::default()
        };
        let runtime = Runtime::new(&config).expect("the driver is available");
        let handle = runtime.handle();
        let place = Rc::new(Place::new(&handle, faults));
        runtime.block_on(scenario(place));
        drop(runtime);
        assert_eq!(handle.pool().buffers_out(), 0, "every buffer came home");
    }
}

fn prefix(len: usize) -> [u8; 4] {
    u32::try_from(len).expect("a frame").to_be_bytes()
}

fn pattern(len: usize, seed: usize) -> Vec<u8> {
    let byte =
        |index: usize| (((index + seed) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8;
    (0..len).map(byte).collect()
}

fn frame(bytes: &[u8]) -> Vec<u8> {
    [&prefix(bytes.len()), bytes].concat()
}

/// Receives the next frame: its first bytes as chunks, the rest into a buffer.
async fn next_frame(handle: &Handle, stream: &Stream, gathered: &mut Vec<u8>) -> Vec<u8> {
    while gathered.len() < 4 {
        let chunk = stream.recv().await.expect("the connection continues");
        assert!(!chunk.is_empty(), "the connection continues");
        gathered.extend_from_slice(&chunk);
    }
    let len = u32::from_be_bytes(*gathered.first_chunk().expect("a prefix")) as usize;
    let there = (gathered.len() - 4).min(len);
    let mut buffer = handle.pool().take_or_wait(len.max(1)).await;
    buffer[..there].copy_from_slice(&gathered[4..4 + there]);
    gathered.drain(..4 + there);
    let (result, buffer) = stream.recv_into(buffer, there..len).await;
    result.expect("the connection continues");
    buffer[..len].to_vec()
}

#[test]
fn frames_of_any_size_arrive_whole_and_in_order() {
    run("", async |place| {
        let handle = place.handle.clone();
        let (client, server) = place.pair().await;
        let sizes = [
            1,
            4,
            99,
            4096,
            8168,
            8169,
            70_000,
            3 << 20,
            7,
            (1 << 23) + 500,
        ];
        let echo = handle.spawn({
            let handle = handle.clone();
            async move {
                let mut gathered = Vec::new();
                for _ in 0..4 * sizes.len() {
                    let bytes = next_frame(&handle, &server, &mut gathered).await;
                    let parts = vec![Part::Bytes(frame(&bytes))];
                    server.send(parts).await.0.expect("the client listens");
                }
                server
            }
        });
        let mut gathered = Vec::new();
        for round in 0..2 {
            let mut parts = Vec::new();
            for (seed, size) in sizes.into_iter().enumerate() {
                let bytes = pattern(size, seed + round);
                let half = bytes.len() / 2;
                let mut buffer = handle.pool().take_or_wait(half + 1).await;
                buffer[1..=half].copy_from_slice(&bytes[..half]);
                parts.push(Part::Bytes(prefix(size).to_vec()));
                parts.push(Part::Buffer(buffer, 1..half + 1));
                parts.push(Part::Source(Source::from(Region::from(
                    bytes[half..].to_vec(),
                ))));
                parts.push(Part::Bytes(frame(&bytes[..1])));
            }
            let count = parts.len();
            let sender = {
                let client = client.clone();
                handle.spawn(async move { client.send(parts).await })
            };
            for (seed, size) in sizes.into_iter().enumerate() {
                let bytes = pattern(size, seed + round);
                let whole = next_frame(&handle, &client, &mut gathered).await;
                assert!(whole == bytes, "{size} bytes");
                let first = next_frame(&handle, &client, &mut gathered).await;
                assert_eq!(first, bytes[..1]);
            }
            let (result, parts) = sender.await.expect("no panic");
            result.expect("the server listens");
            assert_eq!(parts.len(), count, "all parts come back");
            assert!(matches!(parts[1], Part::Buffer(..)));
        }
        drop(echo.await.expect("no panic"));
        assert!(client.recv().await.expect("a good end").is_empty());
    });
}

#[test]
fn a_peer_that_does_not_read_still_gets_responses() {
    run("", async |place| {
        let handle = place.handle.clone();
        let (client, server) = place.pair().await;
        // Requests that the server does not receive, more than the client has credits for.
        let flood = (0..3000).map(|number: usize| Part::Bytes(frame(&pattern(120, number))));
        let flood: Vec<_> = flood.collect();
        client.send(flood).await.0.expect("the server takes it");
        // The responses still get through.
        let answer = pattern(1 << 20, 5);
        let sender = {
            let (server, answer) = (server.clone(), frame(&answer));
            handle.spawn(async move { server.send(vec![Part::Bytes(answer)]).await.0 })
        };
        let mut gathered = Vec::new();
        assert!(next_frame(&handle, &client, &mut gathered).await == answer);
        sender.await.expect("no panic").expect("the client listens");
        let mut gathered = Vec::new();
        for number in 0..3000 {
            let bytes = next_frame(&handle, &server, &mut gathered).await;
            assert_eq!(bytes, pattern(120, number));
        }
    });
}

#[test]
fn memory_is_reached_from_the_far_side() {
    run("", async |place| {
        let handle = place.handle.clone();
        let (client, server) = place.pair().await;
        let bytes = pattern(1 << 20, 3);
        let (near, far) = (
            client.rdma_memory().expect("SMB Direct"),
            server.rdma_memory(),
        );
        let far = far.expect("SMB Direct");
        let exposed = Exposed::ToWrite(Region::from(vec![0; 1 << 20]));
        let exposure = near.expose(exposed).expect("space");
        let descriptor = exposure.descriptor();
        client
            .send(vec![Part::Bytes(frame(b"go"))])
            .await
            .0
            .expect("the server listens");
        let mut gathered = Vec::new();
        next_frame(&handle, &server, &mut gathered).await;
        // The write is posted first, then the response, which invalidates the key.
        let mut buffer = handle.pool().take_or_wait(bytes.len()).await;
        buffer[..1 << 20].copy_from_slice(&bytes);
        let too_much = far.write(vec![Part::Bytes(vec![0; (1 << 20) + 1])], &[descriptor]);
        assert_eq!(
            too_much.await.0.expect_err("too much").kind(),
            io::ErrorKind::InvalidInput
        );
        let write = far.write(vec![Part::Buffer(buffer, 0..1 << 20)], &[descriptor]);
        let mut answer = vec![1, 0, 0, 4];
        answer.extend(descriptor.token.to_le_bytes());
        answer.extend(b"done");
        server
            .send(vec![Part::Bytes(answer)])
            .await
            .0
            .expect("the client listens");
        let (result, parts) = write.await;
        result.expect("it is allowed");
        assert!(matches!(parts[..], [Part::Buffer(..)]));
        let mut gathered = Vec::new();
        assert_eq!(next_frame(&handle, &client, &mut gathered).await, b"done");
        let Exposed::ToWrite(region) = exposure.take_back().await else {
            panic!("the same memory comes back");
        };
        assert!(region[..] == bytes, "the written bytes");
        // The other direction.
        let source = Exposed::ToRead(Source::from(region));
        let exposure = near.expose(source).expect("space");
        let descriptor = exposure.descriptor();
        client
            .send(vec![Part::Bytes(frame(b"go"))])
            .await
            .0
            .expect("the server listens");
        let mut gathered = Vec::new();
        next_frame(&handle, &server, &mut gathered).await;
        let buffer = handle.pool().take_or_wait(1 << 20).await;
        let (result, buffer) = far.read(&[descriptor], buffer, 0..1 << 20).await;
        result.expect("it is allowed");
        assert!(buffer[..1 << 20] == bytes);
        // The peer sends no message for this.
        exposure.take_back().await;
        let read = far.read(&[descriptor], buffer, 0..10).await;
        assert!(read.0.is_err(), "it is out of reach");
        assert!(server.recv().await.is_err() || client.recv().await.is_err());
    });
}

#[test]
fn a_peer_without_login_has_little_memory() {
    run("", async |place| {
        let mut strangers = Vec::new();
        for _ in 0..64 {
            strangers.push(place.both_ends().await);
        }
        let bytes = |(_, server): &(Stream, smbdirect::Stream)| server.memory_bytes();
        let held: usize = strangers.iter().map(bytes).sum();
        assert!(held <= 64 * (96 << 10), "{held}");
        // A message that exceeds the credits still gets through.
        let (client, server) = strangers.pop().expect("one");
        let echo = Stream::from(server.clone());
        for is_trusted in [false, true] {
            if is_trusted {
                server.trust();
            }
            let long = frame(&pattern(200_000, 1));
            let sending = place.handle.spawn({
                let (client, parts) = (client.clone(), vec![Part::Bytes(long.clone())]);
                async move { client.send(parts).await.0 }
            });
            let heard = next_frame(&place.handle, &echo, &mut Vec::new()).await;
            assert!(heard == long[4..]);
            sending.await.expect("no panic").expect("it is sent");
            let answer = vec![Part::Bytes(frame(b"yes"))];
            echo.send(answer).await.0.expect("the client listens");
            let heard = next_frame(&place.handle, &client, &mut Vec::new()).await;
            assert_eq!(heard, b"yes");
            assert_eq!(server.memory_bytes() > 2 << 20, is_trusted);
        }
    });
}

/// Sends messages of a peer that supports RDMA but not SMB Direct; the server ends that connection.
async fn speak(place: &Rc<Place>, messages: &[&[u8]]) -> io::Result<Stream> {
    speak_and_stay(place, messages).await.0
}

/// The same, and the peer sends nothing more.
async fn speak_and_stay(
    place: &Rc<Place>,
    messages: &[&[u8]],
) -> (io::Result<Stream>, Box<dyn QueuePair>) {
    let attributes = Attributes::default();
    let address = place.listener.local_addr();
    let slots = Slots::new(300, 8192).expect("memory");
    let mut pair = place
        .provider
        .connect(address, &attributes)
        .expect("it listens");
    for _ in 0..200 {
        pair.post_receive(slots.take().expect("a slot"));
    }
    pair.flush();
    let server = {
        let place = Rc::clone(place);
        place
            .handle
            .clone()
            .spawn(async move { place.accept().await })
    };
    let mut messages = messages.iter();
    let mut events = Vec::new();
    let mut is_over = false;
    while !is_over {
        pair.poll(&mut events);
        for event in events.drain(..) {
            let next = match event {
                Event::Connected | Event::Received(..) => messages.next(),
                Event::Disconnected(_) => {
                    is_over = true;
                    None
                }
                _ => None,
            };
            if let Some(message) = next {
                let part = Rc::new(Part::Bytes(message.to_vec()));
                let piece = Piece::Shared(part, 0..message.len());
                pair.post_send(WorkId(0), vec![piece], None);
                pair.flush();
            }
        }
        is_over |= server.is_finished() && messages.len() == 0;
        place.handle.yield_now().await;
    }
    let server = server.await.expect("no panic").map(Stream::from);
    (server, pair)
}

/// A valid first message of a peer.
fn hello() -> Vec<u8> {
    let mut hello = vec![0, 1, 0, 1, 0, 0, 255, 0];
    hello.extend(8192_u32.to_le_bytes());
    hello.extend(8192_u32.to_le_bytes());
    hello.extend(131_072_u32.to_le_bytes());
    hello
}

#[test]
fn a_silent_peer_is_disconnected_and_an_answering_one_is_not() {
    run("", async |place| {
        let time = Duration::from_millis(100);
        place.settings.set(Settings {
            keep_alive_interval: Some(time),
            // Enough time for a live peer on a busy machine.
            keep_alive_timeout: Some(20 * time),
            ..Settings::default()
        });
        let (client, server) = place.pair().await;
        let (silent, _pair) = speak_and_stay(&place, &[&hello()]).await;
        let silent = silent.expect("it begins well");
        let error = silent.recv().await.expect_err("a timeout");
        assert_eq!(error.kind(), io::ErrorKind::ConnectionAborted);
        assert!(error.to_string().contains("keep-alives"), "{error}");
        // The other peers got many keep-alives meanwhile, and no other messages.
        let still = vec![Part::Bytes(frame(b"still"))];
        client.send(still).await.0.expect("it listens");
        let mut gathered = Vec::new();
        let handle = place.handle.clone();
        assert_eq!(next_frame(&handle, &server, &mut gathered).await, b"still");
    });
}

#[test]
fn a_violation_ends_only_its_connection() {
    run("", async |place| {
        let (client, server) = place.pair().await;
        let hello = hello();
        let garbage = speak(&place, &[b"GET / HTTP/1.1\r\n\r\n"]).await;
        assert!(garbage.is_err());
        let mut wrong_version = hello.clone();
        wrong_version[..4].fill(9);
        let refused = speak(&place, &[&wrong_version]).await;
        assert_eq!(
            refused.expect_err("no").kind(),
            io::ErrorKind::ConnectionRefused
        );
        // A valid start, then wrong lengths.
        let mut wrong = vec![255, 0, 0, 0, 0, 0, 0, 0];
        wrong.extend(u32::MAX.to_le_bytes());
        wrong.extend(24_u32.to_le_bytes());
        wrong.extend(4000_u32.to_le_bytes());
        wrong.extend([0; 100]);
        let hostile = speak(&place, &[&hello, &wrong])
            .await
            .expect("it begins well");
        let error = hostile.recv().await.expect_err("it does not go on");
        assert_eq!(error.kind(), io::ErrorKind::ConnectionAborted);
        // Other connections are not affected.
        client
            .send(vec![Part::Bytes(frame(b"still"))])
            .await
            .0
            .expect("it listens");
        let mut gathered = Vec::new();
        let handle = place.handle.clone();
        assert_eq!(next_frame(&handle, &server, &mut gathered).await, b"still");
    });
}

#[test]
fn a_connection_that_fails_gives_everything_back() {
    run("disconnect=50", async |place| {
        let handle = place.handle.clone();
        let (client, server) = place.pair().await;
        let exposed = Exposed::ToWrite(Region::from(vec![0; 100]));
        let exposure = client
            .rdma_memory()
            .expect("SMB Direct")
            .expose(exposed)
            .expect("space");
        let reader = {
            let server = server.clone();
            handle.spawn(async move {
                while server.recv().await.is_ok_and(|chunk| !chunk.is_empty()) {}
            })
        };
        let (mut sent, mut failed) = (0, None);
        while failed.is_none() {
            let buffer = handle.pool().take_or_wait(100_000).await;
            let parts = vec![
                Part::Bytes(prefix(100_000).to_vec()),
                Part::Buffer(buffer, 0..100_000),
            ];
            let (result, parts) = client.send(parts).await;
            assert_eq!(parts.len(), 2, "parts come back, sent or not");
            sent += usize::from(result.is_ok());
            failed = result.err();
        }
        assert!((1..50).contains(&sent), "{sent}");
        assert!(client.recv().await.is_err());
        reader.await.expect("no panic");
        assert_eq!(exposure.take_back().await.len(), 100);
        let again = client.send(vec![Part::Bytes(frame(b"x"))]).await;
        assert!(again.0.is_err());
        assert_eq!(again.1.len(), 1);
    });
}
