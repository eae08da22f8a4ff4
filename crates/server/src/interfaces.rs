//! The network interfaces that clients receive, to open more channels of a session.
//! \[MS-SMB2\] 3.3.5.15.11

use std::fs;
use std::io;
use std::net::IpAddr;
use std::str::FromStr;

use wire::fsctl::{InterfaceCapability, NetworkInterface, SocketAddress};

use net::netlink::{self, Address, Link};

/// Speed of a link that does not report its speed, in bits per second. Samba uses the same value.
const UNKNOWN_SPEED: u64 = 1_000_000_000;

/// An entry of `interfaces` in the configuration: `NAME-OR-ADDRESS[;speed=BITS][;rss]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    selector: Selector,
    /// Bits per second. Overrides the speed that the link reports.
    speed: Option<u64>,
    /// The interface has several receive queues (RSS). Overrides what the link reports.
    is_rss: bool,
}

/// How an entry selects interfaces.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Selector {
    Name(String),
    Address(IpAddr),
}

impl FromStr for Entry {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split(';').map(str::trim);
        let selector = parts.next().unwrap_or_default();
        if selector.is_empty() {
            return Err(format!("`{text}` has no interface name or address"));
        }
        let mut entry = Self {
            selector: match selector.parse() {
                Ok(ip) => Selector::Address(ip),
                Err(_) => Selector::Name(selector.to_owned()),
            },
            speed: None,
            is_rss: false,
        };
        for option in parts {
            match option.split_once('=') {
                None if option == "rss" => entry.is_rss = true,
                Some(("speed", bits)) => {
                    let speed = bits.parse().ok().filter(|speed| *speed > 0);
                    let error = || format!("`{bits}` is not a speed in bits per second");
                    entry.speed = Some(speed.ok_or_else(error)?);
                }
                _ => return Err(format!("`{option}` is neither `speed=BITS` nor `rss`")),
            }
        }
        Ok(entry)
    }
}

impl Entry {
    fn matches(&self, link: &Link, ip: IpAddr) -> bool {
        match &self.selector {
            Selector::Name(name) => *name == link.name,
            Selector::Address(wanted) => *wanted == ip,
        }
    }
}

/// Properties of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Properties {
    /// Bits per second.
    speed: u64,
    is_rss: bool,
}

/// Lists the interfaces that clients receive. The addresses in `rdma` are reported as RDMA capable:
/// clients may open SMB Direct channels on them.
///
/// # Errors
/// The kernel does not list its interfaces.
pub(crate) fn list(
    entries: &[Entry],
    listen: &[IpAddr],
    rdma: &[IpAddr],
) -> io::Result<Vec<NetworkInterface>> {
    let links = netlink::links()?;
    let addresses = netlink::addresses()?;
    let mut interfaces = select(entries, listen, &links, &addresses, properties);
    mark(&mut interfaces, rdma);
    Ok(interfaces)
}

/// The device addresses on which the server listens for SMB Direct.
///
/// An unspecified address includes both families: a listener of IPv6 accepts IPv4, too. Clients
/// receive only addresses on which the server listens for TCP.
pub(crate) fn listening(devices: impl Iterator<Item = IpAddr>, listen: &[IpAddr]) -> Vec<IpAddr> {
    let is_listening = |ip: &IpAddr| listen.iter().any(|on| on == ip || on.is_unspecified());
    devices.filter(is_listening).collect()
}

/// Marks the interfaces with RDMA addresses.
fn mark(interfaces: &mut [NetworkInterface], rdma: &[IpAddr]) {
    for interface in interfaces {
        let ip = match interface.address {
            SocketAddress::V4(ip) => IpAddr::from(ip),
            SocketAddress::V6(ip) => IpAddr::from(ip),
            SocketAddress::Other(_) => continue,
        };
        if rdma.contains(&ip) {
            interface.capability |= InterfaceCapability::RDMA_CAPABLE;
        }
    }
}

/// Selects the addresses of active links on which the server listens. Without entries it selects
/// all but loopback, which other hosts cannot reach, unless the server listens on loopback only.
fn select(
    entries: &[Entry],
    listen: &[IpAddr],
    links: &[Link],
    addresses: &[Address],
    properties: impl Fn(&Link) -> Properties,
) -> Vec<NetworkInterface> {
    let is_local_only = listen.iter().all(IpAddr::is_loopback);
    let mut interfaces = Vec::new();
    for Address { index, ip } in addresses {
        let link = links.iter().find(|link| link.index == *index && link.is_up);
        let Some(link) = link.filter(|_| listens(listen, *ip)) else {
            continue;
        };
        let entry = entries.iter().find(|entry| entry.matches(link, *ip));
        let is_wanted = match entry {
            Some(_) => true,
            None => entries.is_empty() && (is_local_only || !link.is_loopback),
        };
        if is_wanted && interfaces.len() < NetworkInterface::MAX_COUNT {
            interfaces.push(describe(link, *ip, entry, properties(link)));
        }
    }
    interfaces
}

/// Returns true if the server listens on this address. Link-local addresses are excluded: a client
/// cannot use them without the name of the client's link.
fn listens(listen: &[IpAddr], ip: IpAddr) -> bool {
    let is_link_local = match ip {
        IpAddr::V4(_) => false,
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    let is_this = |on: &IpAddr| *on == ip || on.is_unspecified() && on.is_ipv4() == ip.is_ipv4();
    !is_link_local && listen.iter().any(is_this)
}

fn describe(
    link: &Link,
    ip: IpAddr,
    entry: Option<&Entry>,
    properties: Properties,
) -> NetworkInterface {
    let is_rss = properties.is_rss || entry.is_some_and(|entry| entry.is_rss);
    NetworkInterface {
        if_index: link.index,
        capability: match is_rss {
            true => InterfaceCapability::RSS_CAPABLE,
            false => InterfaceCapability::NONE,
        },
        link_speed: entry
            .and_then(|entry| entry.speed)
            .unwrap_or(properties.speed),
        address: match ip {
            IpAddr::V4(ip) => SocketAddress::V4(ip.octets()),
            IpAddr::V6(ip) => SocketAddress::V6(ip.octets()),
        },
    }
}

/// Reads the properties of a link from sysfs. A virtual link reports no speed, or -1.
fn properties(link: &Link) -> Properties {
    let directory = format!("/sys/class/net/{}", link.name);
    let speed = fs::read_to_string(format!("{directory}/speed"));
    let megabits = speed.ok().and_then(|text| text.trim().parse::<u64>().ok());
    let is_queue = |name: &str| name.starts_with("rx-");
    let queues = fs::read_dir(format!("{directory}/queues")).map_or(0, |entries| {
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        names.filter(|name| is_queue(name)).count()
    });
    Properties {
        speed: match megabits.filter(|megabits| *megabits > 0) {
            Some(megabits) => megabits.saturating_mul(1_000_000),
            None => UNKNOWN_SPEED,
        },
        is_rss: queues > 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(index: u32, name: &str) -> Link {
        Link {
            index,
            name: name.to_owned(),
            is_up: true,
            is_loopback: name == "lo",
        }
    }

    fn world() -> (Vec<Link>, Vec<Address>) {
        let mut links = vec![link(1, "lo"), link(2, "eth0"), link(3, "eth1")];
        links[2].is_up = false;
        let address = |index, ip: &str| Address {
            index,
            ip: ip.parse().expect("an address"),
        };
        let addresses = vec![
            address(1, "127.0.0.1"),
            address(2, "192.0.2.7"),
            address(2, "2001:db8::7"),
            address(2, "fe80::7"),
            address(3, "192.0.2.8"),
        ];
        (links, addresses)
    }

    fn listed(entries: &[&str], listen: &[&str]) -> Vec<(SocketAddress, u64, bool)> {
        let (links, addresses) = world();
        let entries: Vec<Entry> = entries.iter().map(|e| e.parse().expect("good")).collect();
        let listen: Vec<IpAddr> = listen.iter().map(|ip| ip.parse().expect("an ip")).collect();
        let properties = |_: &Link| Properties {
            speed: 10,
            is_rss: false,
        };
        let list = select(&entries, &listen, &links, &addresses, properties);
        let listed = list.iter().map(|interface| {
            let is_rss = interface.capability == InterfaceCapability::RSS_CAPABLE;
            (interface.address, interface.link_speed, is_rss)
        });
        listed.collect()
    }

    #[test]
    fn addresses_with_a_listener_are_listed() {
        let eth0 = (SocketAddress::V4([192, 0, 2, 7]), 10, false);
        let eth0_v6 = "2001:db8::7".parse::<std::net::Ipv6Addr>().expect("an ip");
        let eth0_v6 = (SocketAddress::V6(eth0_v6.octets()), 10, false);
        let lo = (SocketAddress::V4([127, 0, 0, 1]), 10, false);
        assert_eq!(listed(&[], &["0.0.0.0"]), [eth0]);
        assert_eq!(listed(&[], &["0.0.0.0", "::"]), [eth0, eth0_v6]);
        assert_eq!(listed(&[], &["127.0.0.1"]), [lo]);
        assert_eq!(listed(&[], &["127.0.0.1", "192.0.2.7"]), [eth0]);
        assert_eq!(listed(&[], &["192.0.2.99"]), []);
    }

    #[test]
    fn the_configuration_chooses_and_overrides() {
        let rss = (SocketAddress::V4([192, 0, 2, 7]), 99, true);
        assert_eq!(listed(&["eth0;speed=99;rss"], &["0.0.0.0"]), [rss]);
        let lo = (SocketAddress::V4([127, 0, 0, 1]), 10, true);
        assert_eq!(listed(&["127.0.0.1; rss"], &["0.0.0.0"]), [lo]);
        assert_eq!(listed(&["eth9"], &["0.0.0.0"]), []);
    }

    #[test]
    fn rdma_addresses_are_marked() {
        let (links, addresses) = world();
        let listen = ["0.0.0.0".parse().expect("an ip")];
        let properties = |_: &Link| Properties {
            speed: 10,
            is_rss: true,
        };
        let mut list = select(&[], &listen, &links, &addresses, properties);
        mark(&mut list, &["192.0.2.9".parse().expect("an ip")]);
        assert_eq!(list[0].capability, InterfaceCapability::RSS_CAPABLE);
        mark(&mut list, &["192.0.2.7".parse().expect("an ip")]);
        let both = InterfaceCapability::RSS_CAPABLE | InterfaceCapability::RDMA_CAPABLE;
        assert_eq!(list[0].capability, both);
    }

    #[test]
    fn devices_are_listed_if_the_server_listens_on_them() {
        let ips = |texts: &[&str]| -> Vec<IpAddr> {
            let each = texts.iter().map(|ip| ip.parse().expect("an ip"));
            each.collect()
        };
        let devices = ips(&["192.0.2.7", "192.0.2.8", "2001:db8::7"]);
        let listening = |listen: &[&str]| listening(devices.iter().copied(), &ips(listen));
        assert_eq!(listening(&["192.0.2.8", "192.0.2.9"]), ips(&["192.0.2.8"]));
        assert_eq!(listening(&["0.0.0.0", "::"]), devices);
        assert!(listening(&[]).is_empty());
    }

    #[test]
    fn malformed_entries_are_errors() {
        for bad in ["", ";rss", "eth0;speed=0", "eth0;speed=fast", "eth0;rdma"] {
            assert!(bad.parse::<Entry>().is_err(), "{bad}");
        }
    }
}
