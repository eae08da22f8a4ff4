//! Addresses that a running server listens on.

use std::net::{IpAddr, SocketAddr, UdpSocket};

use net::Transport;

/// An address that a running server listens on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listening {
    /// The bound address. Port 0 of the configuration is replaced by the port that the kernel
    /// chose.
    pub address: SocketAddr,
    /// Transport of the connections to this address.
    pub transport: Transport,
}

impl Listening {
    /// Returns the host part of a URL with which clients on other machines reach the address. An
    /// IPv6 address is in brackets; a link-local address has its network interface. RFC 6874, 2
    pub fn host(&self) -> String {
        match reachable(self.address) {
            SocketAddr::V4(address) => address.ip().to_string(),
            SocketAddr::V6(address) if address.scope_id() == 0 => format!("[{}]", address.ip()),
            SocketAddr::V6(address) => {
                let zone = interface_name(address.scope_id());
                format!("[{}%25{zone}]", address.ip())
            }
        }
    }
}

/// Replaces an unspecified address with one that clients can connect to: the source address for
/// traffic to the Internet, or loopback if the host has no route there.
fn reachable(address: SocketAddr) -> SocketAddr {
    if !address.ip().is_unspecified() {
        return address;
    }
    // Connecting a UDP socket sends no packet. The addresses are reserved for documentation
    // (RFC 5737, RFC 3849).
    let (outward, loopback) = match address {
        SocketAddr::V4(_) => ("192.0.2.1", IpAddr::from([127, 0, 0, 1])),
        SocketAddr::V6(_) => ("2001:db8::1", IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1])),
    };
    let source = UdpSocket::bind((address.ip(), 0)).and_then(|socket| {
        socket.connect((outward, 9))?;
        socket.local_addr()
    });
    let ip = source.map_or(loopback, |source| source.ip());
    SocketAddr::new(ip, address.port())
}

/// Name of an interface; its number if it has no name.
fn interface_name(index: u32) -> String {
    let links = net::netlink::links().unwrap_or_default();
    let link = links.into_iter().find(|link| link.index == index);
    link.map_or_else(|| index.to_string(), |link| link.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_urls_have_brackets_and_zones() {
        let host = |address: &str| {
            let listening = Listening {
                address: address.parse().expect("an address"),
                transport: Transport::Tcp,
            };
            listening.host()
        };
        assert_eq!(host("192.0.2.7:445"), "192.0.2.7");
        assert_eq!(host("[2001:db8::7]:445"), "[2001:db8::7]");
        assert_eq!(host("[fe80::7%1]:445"), "[fe80::7%25lo]");
        assert!(host("[::]:445").starts_with('[') && !host("[::]:445").contains("[::]"));
        assert!(!host("[::]:445").contains("ffff"));
    }

    #[test]
    fn a_client_cannot_connect_to_the_unspecified_address() {
        for text in ["0.0.0.0:445", "[::]:445"] {
            let address: SocketAddr = text.parse().expect("an address");
            let reachable = reachable(address);
            assert!(!reachable.ip().is_unspecified());
            assert_eq!(
                (reachable.is_ipv4(), reachable.port()),
                (address.is_ipv4(), 445)
            );
        }
        let own: SocketAddr = "[fe80::5%2]:445".parse().expect("an address");
        assert_eq!(reachable(own), own);
    }
}
