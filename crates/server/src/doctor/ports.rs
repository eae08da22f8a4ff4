//! Checks of the addresses: whether another program has them.

use std::io;
use std::net::{IpAddr, SocketAddr};

use net::Transport;
use socket2::{Domain, Protocol, Socket, Type};

use super::check::Check;
use super::port_owner;
use crate::codes::{Reason as _, RefusedConfig};
use crate::config::Config;

/// Tries to bind each address, without listening.
pub(super) fn examine(config: &Config, checks: &mut Vec<Check>) {
    for endpoint in config.endpoints() {
        let is_stream = match endpoint.transport {
            Transport::Tcp | Transport::Nbt => true,
            Transport::Quic => false,
            // The RDMA device decides.
            Transport::SmbDirect => continue,
        };
        if endpoint.port == 0 {
            continue;
        }
        let addresses = config.listen().into_iter();
        let addresses = addresses.filter_map(|address| address.socket(endpoint.port).ok());
        for address in addresses {
            if let Some(check) = try_bind(endpoint.transport, address, is_stream) {
                checks.push(check);
            }
        }
    }
}

/// `None` for IPv6 on a machine without it.
fn try_bind(transport: Transport, address: SocketAddr, is_stream: bool) -> Option<Check> {
    let subject = format!("address {address} ({transport})");
    let error = match bind(address, is_stream) {
        Ok(()) => return Some(Check::ok(subject, "free")),
        Err(error) => error,
    };
    let is_any = matches!(address.ip(), IpAddr::V6(ip) if ip.is_unspecified());
    if is_any && error.raw_os_error() == Some(rustix::io::Errno::AFNOSUPPORT.raw_os_error()) {
        return None;
    }
    let code = RefusedConfig::Listen.code();
    Some(match error.kind() {
        io::ErrorKind::AddrInUse => {
            let owner = port_owner::find(address.port(), is_stream);
            let owner = owner.unwrap_or_else(|| "another program".to_owned());
            let check = Check::refused(subject, code, format!("{owner} has the port"));
            check.mended_by("stop that program, or choose another port in server.transports")
        }
        io::ErrorKind::PermissionDenied => {
            let message = "ports below 1024 need root or CAP_NET_BIND_SERVICE";
            let check = Check::refused(subject, code, message);
            check.mended_by("run the server as root, or choose a port such as 4455")
        }
        io::ErrorKind::AddrNotAvailable => {
            let message = "no network interface of this machine has the address";
            let check = Check::refused(subject, code, message);
            check.mended_by("correct server.listen (ip address)")
        }
        _ => Check::refused(subject, code, error),
    })
}

fn bind(address: SocketAddr, is_stream: bool) -> io::Result<()> {
    let (kind, protocol) = match is_stream {
        true => (Type::STREAM, Protocol::TCP),
        false => (Type::DGRAM, Protocol::UDP),
    };
    let socket = Socket::new(Domain::for_address(address), kind, Some(protocol))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    // Closed connections of an earlier server do not matter. For UDP the option would hide a
    // present socket.
    socket.set_reuse_address(is_stream)?;
    socket.bind(&address.into())
}
