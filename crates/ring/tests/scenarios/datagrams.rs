//! Datagrams are sent and received in batches.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use smbeam_ring::{DATAGRAMS_BYTES_MAX, Datagrams, Handle, Outgoing, Udp, UdpBuffers, steer};

use crate::Random;

const BUFFERS: UdpBuffers = UdpBuffers {
    receive_bytes: 4 << 20,
    send_bytes: 4 << 20,
};

fn bind(handle: &Handle, address: SocketAddr) -> Udp {
    let socket = UdpSocket::bind(address).expect("a free port");
    Udp::new(handle, socket, BUFFERS).expect("a socket of this runtime")
}

fn local(handle: &Handle) -> Udp {
    bind(handle, (Ipv4Addr::LOCALHOST, 0).into())
}

fn to(peer: &Udp, segment: Option<usize>) -> Outgoing {
    Outgoing {
        segment,
        peer: peer.local_addr(),
        local: None,
        ecn: 0,
    }
}

/// All datagrams of a batch.
fn cut(datagrams: &Datagrams) -> Vec<Vec<u8>> {
    let datagrams = datagrams.bytes.chunks(datagrams.segment);
    datagrams.map(<[u8]>::to_vec).collect()
}

/// Receives `count` datagrams.
async fn receive(socket: &Udp, count: usize) -> Vec<Vec<u8>> {
    let mut received = Vec::new();
    while received.len() < count {
        received.extend(cut(&socket.recv().await.expect("recv")));
    }
    received
}

pub(crate) async fn batches_arrive_as_they_were_cut(handle: Handle) {
    let (sender, receiver) = (local(&handle), local(&handle));
    let mut random = Random(7);
    for round in 0..200 {
        let segment = 1200 + random.size(7000);
        let most = receiver.segments(segment);
        assert!(most * segment <= DATAGRAMS_BYTES_MAX && most >= 1);
        let length = random.size(most * segment);
        let bytes = random.bytes(length);
        let outgoing = to(&receiver, Some(segment));
        assert_eq!(sender.send(bytes.clone(), outgoing).await, bytes);
        let expected: Vec<_> = bytes.chunks(segment).map(<[u8]>::to_vec).collect();
        let received = receive(&receiver, expected.len()).await;
        assert_eq!(received, expected, "round {round}");
    }
}

pub(crate) async fn datagrams_outlive_their_batch(handle: Handle) {
    let (sender, receiver) = (local(&handle), local(&handle));
    let mut held = Vec::new();
    for round in 0..150_u8 {
        let outgoing = to(&receiver, Some(1000));
        sender.send(vec![round; 60_000], outgoing).await;
        let mut count = 0;
        while count < 60 {
            let mut datagrams = receiver.recv().await.expect("recv");
            while !datagrams.bytes.is_empty() {
                let length = datagrams.segment.min(datagrams.bytes.len());
                let datagram = datagrams.bytes.split_to(length);
                count += 1;
                if count == 30 {
                    held.push((round, datagram.freeze()));
                }
            }
        }
        if round.is_multiple_of(40) {
            held.clear();
        }
    }
    assert_eq!(held.len(), 29);
    for (round, datagram) in held {
        assert!(datagram.iter().all(|byte| *byte == round), "overwritten");
    }
}

pub(crate) async fn addresses_and_marks_come_along(handle: Handle) {
    let any = bind(&handle, (Ipv4Addr::UNSPECIFIED, 0).into());
    let sender = local(&handle);
    let there = Ipv4Addr::new(127, 0, 0, 7);
    let outgoing = Outgoing {
        segment: None,
        peer: (there, any.local_addr().port()).into(),
        local: None,
        ecn: 0b10,
    };
    sender.try_send(b"hello", &outgoing).expect("space");
    let datagrams = any.recv().await.expect("recv");
    assert_eq!(&datagrams.bytes[..], b"hello");
    assert_eq!(datagrams.peer, sender.local_addr());
    assert_eq!(datagrams.local, Some(there.into()));
    assert_eq!(datagrams.ecn, 0b10);
    let answer = Outgoing {
        segment: None,
        peer: datagrams.peer,
        local: datagrams.local,
        ecn: 0,
    };
    any.try_send(b"hello yourself", &answer).expect("space");
    let answered = sender.recv().await.expect("recv");
    assert_eq!(answered.peer.ip(), there);
    assert_eq!(answered.ecn, 0);
}

pub(crate) async fn the_sixth_version_does_the_same(handle: Handle) {
    let (sender, receiver) = (
        bind(&handle, (Ipv6Addr::LOCALHOST, 0).into()),
        bind(&handle, (Ipv6Addr::LOCALHOST, 0).into()),
    );
    let outgoing = Outgoing {
        local: Some(Ipv6Addr::LOCALHOST.into()),
        ecn: 1,
        ..to(&receiver, Some(1300))
    };
    let bytes = Random(3).bytes(13_000);
    sender.try_send(&bytes, &outgoing).expect("space");
    let mut received = Vec::new();
    while received.len() < bytes.len() {
        let datagrams = receiver.recv().await.expect("recv");
        assert_eq!(datagrams.peer, sender.local_addr());
        assert_eq!(datagrams.local, Some(Ipv6Addr::LOCALHOST.into()));
        assert_eq!(datagrams.ecn, 1);
        received.extend_from_slice(&datagrams.bytes);
    }
    assert_eq!(received, bytes);
}

pub(crate) async fn a_dropped_receive_loses_no_datagram(handle: Handle) {
    let (sender, receiver) = (local(&handle), local(&handle));
    for round in 0..50_u8 {
        let dropped = handle.timeout(Duration::ZERO, receiver.recv()).await;
        assert!(dropped.is_err());
        let outgoing = to(&receiver, None);
        sender.try_send(&[round; 100], &outgoing).expect("space");
        let datagrams = receiver.recv().await.expect("recv");
        assert_eq!(&datagrams.bytes[..], [round; 100]);
    }
}

pub(crate) async fn a_flood_is_received_up_to_the_limit_of_the_buffers(handle: Handle) {
    let (sender, receiver) = (local(&handle), local(&handle));
    // Far more than a ring of provided buffers holds.
    for round in 0..500_u32 {
        let outgoing = to(&receiver, None);
        let bytes = round.to_le_bytes().to_vec();
        sender.send(bytes, outgoing).await;
    }
    let received = receive(&receiver, 500).await;
    let expected: Vec<_> = (0..500_u32)
        .map(|round| round.to_le_bytes().to_vec())
        .collect();
    assert_eq!(received, expected);
}

pub(crate) async fn sockets_of_one_port_share_by_connection(handle: Handle) {
    let sockets = group(3);
    steer(&sockets[0], 3).expect("a group");
    let wrap = |socket| Udp::new(&handle, socket, BUFFERS).expect("a socket");
    let sockets: Vec<Udp> = sockets.into_iter().map(wrap).collect();
    for first in 0..12_u8 {
        // Another port each time, which the kernel's default hash would distribute.
        let sender = local(&handle);
        let short = [0x40, 1, first, 2, 3, 4, 5, 6, 7];
        let long = [0xC0, 0, 0, 0, 1, 8, 1, first, 9, 9, 9, 9, 9, 9];
        let chosen = &sockets[(256 + usize::from(first)) % 3];
        for datagram in [&short[..], &long[..]] {
            sender.try_send(datagram, &to(chosen, None)).expect("space");
            let datagrams = chosen.recv().await.expect("recv");
            assert_eq!(&datagrams.bytes[..], datagram);
        }
    }
}

/// Sockets of one address.
fn group(count: usize) -> Vec<UdpSocket> {
    let mut sockets = Vec::new();
    let mut address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    for _ in 0..count {
        use socket2::{Domain, Socket, Type};
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).expect("a socket");
        socket.set_reuse_port(true).expect("an option");
        socket.bind(&address.into()).expect("a port");
        let socket = UdpSocket::from(socket);
        address = socket.local_addr().expect("bound");
        sockets.push(socket);
    }
    sockets
}
