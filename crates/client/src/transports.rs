//! Which transports a session uses, and in which order.

use std::net::{IpAddr, SocketAddr};

use net::{Endpoint, Transport};

use crate::interfaces::Interface;
use crate::options::{CHANNELS_AUTO, CHANNELS_MAX, Channels, Options, Transports};

/// Channels to one address by SMB Direct, as Windows opens them.
const CHANNELS_PER_RDMA: usize = 2;
/// Addresses that speak RDMA which are tried.
const RDMA_ADDRESSES: usize = 4;
/// The ports of SMB Direct: of iWARP, and of RoCE and InfiniBand. \[MS-SMBD\] 2.1
const RDMA_PORTS: [u16; 2] = [5445, 445];

/// Where a further channel leads.
pub(crate) type Way = (SocketAddr, Transport);

impl Options {
    /// What is tried for the first channel, with the port that was given with the host.
    pub(crate) fn first_channel(&self, port: Option<u16>) -> Vec<Endpoint> {
        let mut list = match (&self.channels, &self.transports) {
            (Channels::Over(list), _) if !list.is_empty() => vec![list[0]],
            (_, Transports::InOrder(list)) => list.to_vec(),
            (_, Transports::Auto) => vec![Transport::Tcp.into()],
        };
        if let Some(port) = port {
            list[0].port = port;
        }
        list
    }

    /// Whether the server's interfaces say which further channels there are.
    pub(crate) fn asks_for_interfaces(&self) -> bool {
        self.channels == Channels::Auto || self.moves()
    }

    /// Whether a session leaves its first transport for a better one.
    pub(crate) fn moves(&self) -> bool {
        self.transports == Transports::Auto && !matches!(self.channels, Channels::Over(_))
    }

    /// The further channels that were asked for by number or by name.
    pub(crate) fn further_channels(&self, first: Way) -> Vec<Way> {
        match &self.channels {
            Channels::Auto => Vec::new(),
            Channels::Exactly(count) => vec![first; (*count).clamp(1, CHANNELS_MAX) - 1],
            Channels::Over(list) => {
                let further = list.iter().take(CHANNELS_MAX).skip(1);
                let to = |endpoint: &Endpoint| {
                    // A copy, because a link-local address has a zone.
                    let mut address = first.0;
                    address.set_port(endpoint.port);
                    (address, endpoint.transport)
                };
                further.map(to).collect()
            }
        }
    }

    /// How many channels go by SMB Direct where it is found.
    pub(crate) fn rdma_channels(&self, addresses: usize) -> usize {
        match self.channels {
            Channels::Exactly(count) => count.clamp(1, CHANNELS_MAX),
            _ => (addresses * CHANNELS_PER_RDMA).min(CHANNELS_AUTO),
        }
    }
}

/// The addresses of a server that speak RDMA, each with the ports to try: fast ones first.
pub(crate) fn rdma_addresses(interfaces: &[Interface]) -> Vec<[SocketAddr; 2]> {
    let capable = interfaces.iter().filter(|found| found.is_rdma_capable);
    let mut found: Vec<(u64, IpAddr)> = capable
        .filter_map(|interface| Some((interface.speed, interface.address?)))
        .collect();
    found.sort_by_key(|(speed, _)| std::cmp::Reverse(*speed));
    found.truncate(RDMA_ADDRESSES);
    let ports = |(_, ip)| RDMA_PORTS.map(|port| SocketAddr::new(ip, port));
    found.into_iter().map(ports).collect()
}

/// Where further channels of TCP are worth it: as Windows does, several on an interface that
/// spreads over processors, one on each other that is as fast as the one in use.
pub(crate) fn suggest(first: SocketAddr, interfaces: &[Interface]) -> Vec<SocketAddr> {
    let here = first.ip().to_canonical();
    let is_here = |interface: &&Interface| interface.address == Some(here);
    let Some(used) = interfaces.iter().find(is_here) else {
        return Vec::new();
    };
    let others = interfaces.iter().filter(|other| {
        other.index != used.index
            && other.speed >= used.speed
            && other
                .address
                .is_some_and(|ip| ip.is_ipv4() == here.is_ipv4())
    });
    let mut addresses: Vec<_> = others
        .filter_map(|other| other.address)
        .map(|ip| SocketAddr::new(ip, first.port()))
        .collect();
    if used.is_rss_capable {
        addresses.resize(addresses.len().max(CHANNELS_AUTO - 1), first);
    }
    addresses.truncate(CHANNELS_AUTO - 1);
    addresses
}

#[cfg(test)]
mod tests {
    use net::Endpoints;

    use super::*;

    fn interface(index: u32, address: &str, speed: u64, is_rss_capable: bool) -> Interface {
        Interface {
            index,
            address: address.parse().ok(),
            speed,
            is_rss_capable,
            is_rdma_capable: false,
        }
    }

    fn endpoint(text: &str) -> Endpoint {
        text.parse().expect("an endpoint")
    }

    #[test]
    fn further_channels_go_where_they_help() {
        let first: SocketAddr = "10.0.0.1:445".parse().expect("an address");
        let other: SocketAddr = "10.0.1.1:445".parse().expect("an address");
        let plain = interface(1, "10.0.0.1", 10, false);
        let rss = interface(1, "10.0.0.1", 10, true);
        let second = interface(2, "10.0.1.1", 10, false);
        let slow = interface(3, "10.0.2.1", 1, false);
        let v6 = interface(4, "fd00::1", 10, false);
        assert_eq!(suggest(first, &[plain.clone(), slow.clone(), v6]), []);
        assert_eq!(suggest(first, &[plain, second.clone()]), [other]);
        assert_eq!(suggest(first, std::slice::from_ref(&rss)), [first; 3]);
        assert_eq!(suggest(first, &[rss, second, slow]), [other, first, first]);
        assert_eq!(suggest(first, &[]), []);
    }
    #[test]
    fn the_fastest_address_with_rdma_is_tried_first() {
        let mut list = [
            interface(1, "10.0.0.1", 10, false),
            interface(2, "10.0.1.1", 10, false),
            interface(3, "10.0.2.1", 40, false),
        ];
        assert!(rdma_addresses(&list).is_empty());
        list[1].is_rdma_capable = true;
        list[2].is_rdma_capable = true;
        let address = |text: &str| text.parse::<SocketAddr>().expect("an address");
        let wanted = [
            [address("10.0.2.1:5445"), address("10.0.2.1:445")],
            [address("10.0.1.1:5445"), address("10.0.1.1:445")],
        ];
        assert_eq!(rdma_addresses(&list), wanted);
    }

    #[test]
    fn a_port_with_the_host_is_that_of_the_first_transport() {
        let list: Endpoints = "tcp,quic".parse().expect("a list");
        let mut options = Options {
            transports: list.into(),
            ..Options::default()
        };
        let wanted = [endpoint("tcp:4455"), endpoint("quic")];
        assert_eq!(options.first_channel(Some(4455)), wanted);
        assert_eq!(options.first_channel(None)[0], endpoint("tcp:445"));
        options.channels = Channels::Over(vec![endpoint("quic:1"), endpoint("tcp")]);
        assert_eq!(options.first_channel(None), [endpoint("quic:1")]);
        assert_eq!(options.first_channel(Some(2)), [endpoint("quic:2")]);
    }

    #[test]
    fn channels_that_are_named_lead_to_the_host_of_the_first() {
        let first = ("10.0.0.1:4455".parse().expect("an address"), Transport::Tcp);
        let mut options = Options {
            channels: Channels::Over(vec![endpoint("tcp"), endpoint("quic:1443")]),
            ..Options::default()
        };
        let quic = (
            "10.0.0.1:1443".parse().expect("an address"),
            Transport::Quic,
        );
        assert_eq!(options.further_channels(first), [quic]);
        options.channels = Channels::Exactly(3);
        assert_eq!(options.further_channels(first), [first; 2]);
    }
}
