//! Addresses of client machines, and the prefixes by which limits count them.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Number of the bits of an IPv6 address that name a machine in its network. Each subscriber has at
/// least one network of this size. RFC 4291 2.5.4, RFC 6177
const HOST_BITS: u32 = 64;

/// The address of a client machine.
///
/// An IPv4-mapped IPv6 address counts as the IPv4 address. A link-local address includes the
/// interface, because each link has separate addresses. RFC 4007 6
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ClientAddress {
    ip: IpAddr,
    /// Index of the interface of a link-local address; 0 for other addresses.
    interface: u32,
}

impl From<SocketAddr> for ClientAddress {
    fn from(peer: SocketAddr) -> Self {
        let ip = peer.ip().to_canonical();
        let interface = match (peer, ip) {
            (SocketAddr::V6(peer), IpAddr::V6(ip)) if ip.is_unicast_link_local() => peer.scope_id(),
            _ => 0,
        };
        Self { ip, interface }
    }
}

impl ClientAddress {
    /// The address without the interface.
    pub(crate) fn ip(self) -> IpAddr {
        self.ip
    }

    /// The prefix that the limits count.
    pub(crate) fn prefix(self) -> ClientPrefix {
        match self.ip {
            IpAddr::V6(ip) if !ip.is_unicast_link_local() => ClientPrefix(Self {
                ip: Ipv6Addr::from(u128::from(ip) >> HOST_BITS << HOST_BITS).into(),
                interface: 0,
            }),
            IpAddr::V4(_) | IpAddr::V6(_) => ClientPrefix(self),
        }
    }
}

impl fmt::Display for ClientAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.interface {
            0 => write!(f, "{}", self.ip),
            interface => write!(f, "{}%{interface}", self.ip),
        }
    }
}

/// The prefix of client addresses that limits count as one: a whole IPv4 address, a /64 network of
/// IPv6, or a link-local address with its interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ClientPrefix(ClientAddress);

impl ClientPrefix {
    /// Returns true if the prefix can contain several machines.
    pub(crate) fn is_network(self) -> bool {
        matches!(self.0.ip, IpAddr::V6(ip) if !ip.is_unicast_link_local())
    }
}

impl fmt::Display for ClientPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_network() {
            true => write!(f, "{}/{}", self.0, u128::BITS - HOST_BITS),
            false => self.0.fmt(f),
        }
    }
}

/// The client of a text such as `10.0.0.1` or `fe80::1%2`.
#[cfg(test)]
pub(crate) fn client(text: &str) -> ClientAddress {
    use std::net::SocketAddrV6;
    let (ip, interface) = text.split_once('%').unwrap_or((text, "0"));
    let interface = interface.parse().expect("a number");
    match ip.parse().expect("an address") {
        IpAddr::V4(ip) => SocketAddr::from((ip, 40_000)).into(),
        IpAddr::V6(ip) => SocketAddr::from(SocketAddrV6::new(ip, 40_000, 0, interface)).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_count_a_network_of_ipv6_as_one_client() {
        for (one, other, is_same) in [
            ("2001:db8::1", "2001:db8::ffff:ffff:ffff:ffff", true),
            ("2001:db8::1", "2001:db8:0:1::1", false),
            ("10.0.0.1", "::ffff:10.0.0.1", true),
            ("10.0.0.1", "10.0.0.2", false),
            ("::ffff:10.0.0.1", "::ffff:10.0.0.2", false),
            ("fe80::1%2", "fe80::2%2", false),
            ("fe80::1%2", "fe80::1%3", false),
            ("fe80::1%2", "fe80::1%2", true),
            ("2001:db8::1%2", "2001:db8::1%3", true),
        ] {
            let (one, other) = (client(one), client(other));
            assert_eq!(one.prefix() == other.prefix(), is_same, "{one} {other}");
        }
    }

    #[test]
    fn prefixes_have_the_usual_notation() {
        for (address, prefix) in [
            ("2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
            ("::ffff:10.0.0.1", "10.0.0.1"),
            ("fe80::1%2", "fe80::1%2"),
        ] {
            assert_eq!(client(address).prefix().to_string(), prefix);
        }
    }
}
