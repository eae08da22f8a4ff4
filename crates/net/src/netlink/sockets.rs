//! The TCP sockets of this host, from sock_diag(7). They belong to any process.

use std::io;
use std::time::Duration;

use rustix::net::netlink;

use super::{attribute, dump, u16_at, u32_at};

/// A connected TCP socket of this host, with the times that the kernel counts since it was
/// connected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpSocket {
    /// Port of this end.
    pub local_port: u16,
    /// Port of the other end.
    pub peer_port: u16,
    /// Smoothed round trip.
    pub round_trip: Duration,
    /// Number of segments that were sent again.
    pub retransmits: u32,
    /// Time with data to send.
    pub busy: Duration,
    /// Part of it in which the receive window of the peer was full.
    pub window_limited: Duration,
    /// Part of it in which the send buffer was full.
    pub buffer_limited: Duration,
}

/// Type of the request and of its answers. sock_diag(7)
const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// Bytes of struct inet_diag_req_v2 and of struct inet_diag_msg.
const REQUEST_LEN: usize = 56;
const ANSWER_LEN: usize = 72;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const IPPROTO_TCP: u8 = 6;
/// State ESTABLISHED, as a bit.
const ESTABLISHED: u32 = 1 << 1;
/// The attribute with struct tcp_info.
const INET_DIAG_INFO: u16 = 2;
/// Offsets in struct tcp_info.
const INFO_RTT: usize = 68;
const INFO_TOTAL_RETRANS: usize = 100;
const INFO_BUSY_TIME: usize = 168;
const INFO_RWND_LIMITED: usize = 176;
const INFO_SNDBUF_LIMITED: usize = 184;

/// Lists the connected TCP sockets of this host.
///
/// # Errors
/// The kernel refuses the request, or its answer is malformed.
pub fn tcp_sockets() -> io::Result<Vec<TcpSocket>> {
    let mut sockets = Vec::new();
    for family in [AF_INET, AF_INET6] {
        let mut request = [0; REQUEST_LEN];
        request[0] = family;
        request[1] = IPPROTO_TCP;
        request[2] = 1 << (INET_DIAG_INFO - 1);
        request[4..8].copy_from_slice(&ESTABLISHED.to_ne_bytes());
        dump(
            Some(netlink::SOCK_DIAG),
            SOCK_DIAG_BY_FAMILY,
            &request,
            |kind, body| {
                if kind == SOCK_DIAG_BY_FAMILY {
                    sockets.extend(socket(body));
                }
            },
        )?;
    }
    Ok(sockets)
}

fn socket(body: &[u8]) -> Option<TcpSocket> {
    // Ports are in network order.
    let port = |at| u16_at(body, at).map(u16::from_be);
    let info = attribute(body.get(ANSWER_LEN..)?, INET_DIAG_INFO)?;
    let microseconds = |at| Some(Duration::from_micros(u64_at(info, at)?));
    Some(TcpSocket {
        local_port: port(4)?,
        peer_port: port(6)?,
        round_trip: Duration::from_micros(u32_at(info, INFO_RTT)?.into()),
        retransmits: u32_at(info, INFO_TOTAL_RETRANS)?,
        busy: microseconds(INFO_BUSY_TIME)?,
        window_limited: microseconds(INFO_RWND_LIMITED)?,
        buffer_limited: microseconds(INFO_SNDBUF_LIMITED)?,
    })
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at + 8)?;
    Some(u64::from_ne_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn both_ends_of_a_connection_are_listed() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let client = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
        let client_port = client.local_addr().expect("an address").port();
        let _server = listener.accept().expect("a connection");
        let sockets = tcp_sockets().expect("the kernel answers");
        let ends = |local, peer| {
            let mut all = sockets.iter();
            all.any(|it| it.local_port == local && it.peer_port == peer)
        };
        assert!(ends(port, client_port) && ends(client_port, port));
    }

    #[test]
    fn truncated_answers_are_ignored() {
        assert_eq!(socket(&[0; ANSWER_LEN - 1]), None);
        assert_eq!(socket(&[0; ANSWER_LEN]), None);
    }
}
