//! The QUIC sockets of a server.

use std::io;
use std::net::{SocketAddr, UdpSocket};

/// Binds a socket for each worker on one address, before any worker runs. The kernel numbers the
/// sockets in this order. A socket without a reader would lose its packets. `is_own`: this server
/// has sockets there.
pub(crate) fn bind(
    address: SocketAddr,
    workers: usize,
    is_own: bool,
) -> io::Result<(SocketAddr, Vec<UdpSocket>)> {
    // First without SO_REUSEPORT: with it, two servers would share the port unnoticed.
    let bound = match is_own {
        true => address,
        false => bind_one(address, false)?.local_addr()?,
    };
    let sockets: io::Result<Vec<_>> = (0..workers).map(|_| bind_one(bound, true)).collect();
    let sockets = sockets?;
    if let [first, _, ..] = &sockets[..] {
        ring::steer(first, u32::try_from(workers).unwrap_or(u32::MAX))?;
    }
    Ok((bound, sockets))
}

fn bind_one(address: SocketAddr, reuse_port: bool) -> io::Result<UdpSocket> {
    use socket2::{Domain, Socket, Type};
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, None)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_reuse_port(reuse_port)?;
    socket.bind(&address.into())?;
    Ok(socket.into())
}
