//! Packets of QUIC. All of a client's come from one address, and each client has a socket to the
//! server.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::Result;
use socket2::SockRef;

use super::{Shared, Way};

/// Bytes of the largest packet there is.
const PACKET_BYTES: usize = 1 << 16;
/// Bytes that the kernel keeps for each socket: a packet that is lost costs a round trip.
const BUFFER_BYTES: usize = 4 << 20;

/// A connection.
struct Link {
    number: usize,
    server: UdpSocket,
    is_cut: Arc<AtomicBool>,
    passed: u64,
}

/// Relays to a port of loopback, from the port that it returns.
pub(super) fn relay(server: u16, shared: Arc<Shared>) -> Result<u16> {
    let socket = socket(0)?;
    let port = socket.local_addr()?.port();
    thread::spawn(move || there(&socket, server, &shared));
    Ok(port)
}

fn socket(port: u16) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, port))?;
    SockRef::from(&socket).set_recv_buffer_size(BUFFER_BYTES)?;
    Ok(socket)
}

/// Forwards the packets of clients to the server.
fn there(socket: &UdpSocket, server: u16, shared: &Arc<Shared>) -> io::Result<()> {
    let mut links: HashMap<SocketAddr, Link> = HashMap::new();
    let mut packet = vec![0; PACKET_BYTES];
    loop {
        let Ok((bytes, client)) = socket.recv_from(&mut packet) else {
            // ICMP port unreachable: a client has closed its socket.
            continue;
        };
        let link = match links.entry(client) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(link(socket, client, server, shared)?),
        };
        if link.is_cut.load(Ordering::Relaxed) {
            continue;
        }
        let line = (link.number, Way::There);
        if shared
            .passes(line, link.passed, bytes, Vec::new())
            .is_some()
        {
            link.is_cut.store(true, Ordering::Relaxed);
            continue;
        }
        link.passed += bytes as u64;
        // Of a server that is not there nothing is heard.
        let _ = link.server.send(&packet[..bytes]);
    }
}

fn link(
    socket: &UdpSocket,
    client: SocketAddr,
    server: u16,
    shared: &Arc<Shared>,
) -> io::Result<Link> {
    let own = self::socket(0)?;
    own.connect((Ipv4Addr::LOCALHOST, server))?;
    let is_cut = Arc::new(AtomicBool::new(false));
    let (cut, shared) = (Arc::clone(&is_cut), Arc::clone(shared));
    let number = shared.add(Box::new(move || cut.store(true, Ordering::Relaxed)));
    let link = Link {
        number,
        server: own.try_clone()?,
        is_cut: Arc::clone(&is_cut),
        passed: 0,
    };
    let socket = socket.try_clone()?;
    thread::spawn(move || {
        let (mut packet, mut passed) = (vec![0; PACKET_BYTES], 0);
        while !is_cut.load(Ordering::Relaxed) {
            let Ok(bytes) = own.recv(&mut packet) else {
                continue;
            };
            let line = (number, Way::Back);
            if shared.passes(line, passed, bytes, Vec::new()).is_some() {
                is_cut.store(true, Ordering::Relaxed);
                break;
            }
            passed += bytes as u64;
            let _ = socket.send_to(&packet[..bytes], client);
        }
    });
    Ok(link)
}
