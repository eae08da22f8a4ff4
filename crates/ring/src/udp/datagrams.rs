//! Received datagrams, and the buffer sizes of a socket.

use std::net::{IpAddr, SocketAddr};

use bytes::BytesMut;

/// One or several datagrams from one sender that the kernel delivered together.
#[derive(Debug)]
pub struct Datagrams {
    /// The contents of the datagrams, one after the other.
    pub bytes: BytesMut,
    /// Length in bytes of each datagram in `bytes`; the last one may be shorter.
    pub segment: usize,
    /// Address and port of the sender.
    pub peer: SocketAddr,
    /// Destination IP address of the datagrams; `None` if the kernel does not report it.
    pub local: Option<IpAddr>,
    /// The two bits of explicit congestion notification in the IP header (0 to 3). RFC 3168 5
    pub ecn: u8,
}

/// Sizes of the kernel's buffers of a UDP socket.
#[derive(Clone, Copy, Debug)]
pub struct UdpBuffers {
    /// Size in bytes of the buffer for received datagrams (SO_RCVBUF).
    pub receive_bytes: usize,
    /// Size in bytes of the buffer for datagrams to send (SO_SNDBUF).
    pub send_bytes: usize,
}
