//! What a router says about one datagram is not the end of a connection.
//!
//! A path may have a smaller MTU than its first link; a router then reports it to the sender that
//! tries longer ones. Here is no router: the report is forged. As the kernel remembers it for all
//! that goes to that address, the test has a separate network, which needs root.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use ring::{Config, Handle, Io, Part, Runtime};
use smbeam_net::Stream;
use smbeam_net::quic::{Listener, ListenerEvent, Server, Settings, connect};

#[path = "quic/trust.rs"]
mod trust;

/// Set within the network that was made.
const INSIDE: &str = "SMBEAM_TEST_NETWORK";

#[test]
fn a_datagram_that_is_too_long_for_a_router_ends_nothing() {
    if std::env::var_os(INSIDE).is_some() {
        for io in [Io::Uring, Io::Epoll] {
            let runtime = Runtime::new(&Config {
                io,
                ..Config::default()
            });
            let runtime = runtime.expect("the driver is available");
            runtime.block_on(scenario(runtime.handle()));
        }
        return;
    }
    let own = std::env::current_exe().expect("a path");
    let script = "ip link set lo up && exec \"$0\" --nocapture";
    let mut inside = Command::new("unshare");
    inside.args(["--net", "--", "/bin/sh", "-c", script]);
    let can_unshare = Command::new("unshare")
        .args(["--net", "ip", "link"])
        .output();
    if !can_unshare.is_ok_and(|output| output.status.success()) {
        return eprintln!("skipped: no network can be made here");
    }
    let status = inside.arg(own).env(INSIDE, "1").status().expect("it runs");
    assert!(status.success());
}

async fn scenario(handle: Handle) {
    let (client, server) = pair(&handle).await;
    let local = client.local_addr().expect("an address");
    let peer = client.peer_addr().expect("an address");
    for round in 0..3 {
        report_too_long(local, peer);
        // The client hears of it when it receives; a send would take the report unseen.
        for (from, to) in [(&server, &client), (&client, &server)] {
            let (result, _) = from.send(vec![Part::Bytes(vec![round; 3000])]).await;
            result.expect("the stream continues");
            receive(&handle, to, 3000).await;
        }
    }
}

async fn pair(handle: &Handle) -> (Stream, Stream) {
    let tls = trust::server_config(smbeam_net::tls::ALPN);
    let settings = Settings::default();
    let server = Server::new(
        settings.clone(),
        Box::new(move || Arc::clone(&tls)),
        &[7; 32],
    );
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = socket.local_addr().expect("bound");
    let listener = Listener::new(handle, socket, &server.expect("TLS 1.3"), 0, 1);
    let listener = listener.expect("a socket");
    let own = handle.clone();
    let connecting = handle.spawn(async move {
        let tls = trust::client_config(smbeam_net::tls::ALPN);
        let stream = connect(&own, address, "smbeam.test", tls, &settings).await;
        let stream = stream.expect("connect");
        let (result, _) = stream.send(vec![Part::Bytes(b"hello".to_vec())]).await;
        result.expect("send");
        stream
    });
    let ListenerEvent::Incoming(incoming) = listener.next_event().await else {
        panic!("there is one worker");
    };
    let server = incoming.accept().await.expect("accept");
    receive(handle, &server, 5).await;
    (connecting.await.expect("no panic"), server)
}

async fn receive(handle: &Handle, stream: &Stream, mut left: usize) {
    while left > 0 {
        let chunk = handle.timeout(Duration::from_secs(20), stream.recv());
        let chunk = chunk.await.expect("something comes").expect("no error");
        assert!(!chunk.is_empty(), "it is not over");
        left -= chunk.len();
    }
}

/// Reports to the sender at `local` that a datagram to `peer` was longer than 1,280 bytes, the MTU
/// of the path. RFC 792, RFC 1191 4
fn report_too_long(local: SocketAddr, peer: SocketAddr) {
    use socket2::{Domain, Protocol, Socket, Type};
    let mut report = vec![3, 4, 0, 0, 0, 0];
    report.extend_from_slice(&1280_u16.to_be_bytes());
    // The head of the packet that it is about: 1,400 bytes of UDP, not to be fragmented.
    report.extend_from_slice(&[0x45, 0, 5, 0x94, 0, 1, 0x40, 0, 64, 17, 0, 0]);
    for address in [local, peer] {
        let SocketAddr::V4(address) = address else {
            panic!("the test is of IPv4");
        };
        report.extend_from_slice(&address.ip().octets());
    }
    report.extend_from_slice(&local.port().to_be_bytes());
    report.extend_from_slice(&peer.port().to_be_bytes());
    report.extend_from_slice(&[5, 0x80, 0, 0]);
    let sum = checksum(&report);
    report[2..4].copy_from_slice(&sum.to_be_bytes());
    let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::ICMPV4));
    let to = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
    let sent = socket.expect("root may").send_to(&report, &to.into());
    assert_eq!(sent.expect("sent"), report.len());
}

/// RFC 1071
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes
        .chunks(2)
        .map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
    let mut sum: u32 = words.map(u32::from).sum();
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    !u16::try_from(sum).expect("folded")
}
