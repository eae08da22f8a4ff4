//! The interfaces that clients are told of, to open further channels of a session on.
//! \[MS-SMB2\] 3.3.5.15.11

use std::fs;
use std::io;
use std::net::IpAddr;
use std::str::FromStr;

use wire::fsctl::{InterfaceCapability, NetworkInterface, SocketAddress};

use net::netlink::{self, Address, Link};

/// Bits per second of a link that does not tell. Samba says the same.
const UNKNOWN_SPEED: u64 = 1_000_000_000;

/// An entry of `interfaces` in the configuration: `NAME-OR-ADDRESS[;speed=BITS][;rss]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    which: Which,
    /// Bits per second, in place of what the link tells.
    speed: Option<u64>,
    /// Receives on several queues, whatever the link tells.
    is_rss: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Which {
    Name(String),
    Address(IpAddr),
}

impl FromStr for Entry {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split(';').map(str::trim);
        let which = parts.next().unwrap_or_default();
        if which.is_empty() {
            return Err(format!("`{text}` names no interface"));
        }
        let mut entry = Self {
            which: match which.parse() {
                Ok(ip) => Which::Address(ip),
                Err(_) => Which::Name(which.to_owned()),
            },
            speed: None,
            is_rss: false,
        };
        for option in parts {
            match option.split_once('=') {
                None if option == "rss" => entry.is_rss = true,
                Some(("speed", bits)) => {
                    let speed = bits.parse().ok().filter(|speed| *speed > 0);
                    let error = || format!("`{bits}` is no number of bits per second");
                    entry.speed = Some(speed.ok_or_else(error)?);
                }
                _ => return Err(format!("`{option}` is neither `speed=BITS` nor `rss`")),
            }
        }
        Ok(entry)
    }
}

impl Entry {
    fn is_of(&self, link: &Link, ip: IpAddr) -> bool {
        match &self.which {
            Which::Name(name) => *name == link.name,
            Which::Address(wanted) => *wanted == ip,
        }
    }
}

/// What a link can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ability {
    /// Bits per second.
    speed: u64,
    is_rss: bool,
}

/// What clients are told now.
///
/// Those of `rdma` are said to take SMB Direct: a client may open a channel of that on any address
/// that says so.
pub(crate) fn list(
    entries: &[Entry],
    listen: &[IpAddr],
    rdma: &[IpAddr],
) -> io::Result<Vec<NetworkInterface>> {
    let links = netlink::links()?;
    let addresses = netlink::addresses()?;
    let mut interfaces = select(entries, listen, &links, &addresses, ability);
    mark(&mut interfaces, rdma);
    Ok(interfaces)
}

/// Of the addresses of devices those at which somebody listens by SMB Direct.
///
/// Which family an unspecified address is of does not count: that of IPv6 is heard at for both, and
/// clients are only told addresses at which the server is to be reached.
pub(crate) fn listening(devices: impl Iterator<Item = IpAddr>, listen: &[IpAddr]) -> Vec<IpAddr> {
    let is_heard = |ip: &IpAddr| listen.iter().any(|on| on == ip || on.is_unspecified());
    devices.filter(is_heard).collect()
}

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

/// Of the addresses that the server listens on, those of links that are up: without a
/// configuration all but loopback, which nobody else can reach, unless there is nothing else.
fn select(
    entries: &[Entry],
    listen: &[IpAddr],
    links: &[Link],
    addresses: &[Address],
    ability: impl Fn(&Link) -> Ability,
) -> Vec<NetworkInterface> {
    let is_local_only = listen.iter().all(IpAddr::is_loopback);
    let mut interfaces = Vec::new();
    for Address { index, ip } in addresses {
        let link = links.iter().find(|link| link.index == *index && link.is_up);
        let Some(link) = link.filter(|_| listens(listen, *ip)) else {
            continue;
        };
        let entry = entries.iter().find(|entry| entry.is_of(link, *ip));
        let is_wanted = match entry {
            Some(_) => true,
            None => entries.is_empty() && (is_local_only || !link.is_loopback),
        };
        if is_wanted && interfaces.len() < NetworkInterface::MAX_COUNT {
            interfaces.push(describe(link, *ip, entry, ability(link)));
        }
    }
    interfaces
}

/// Whether the server can be reached there. A link-local address says nothing without its link.
fn listens(listen: &[IpAddr], ip: IpAddr) -> bool {
    let is_link_local = match ip {
        IpAddr::V4(_) => false,
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    let is_there = |on: &IpAddr| *on == ip || on.is_unspecified() && on.is_ipv4() == ip.is_ipv4();
    !is_link_local && listen.iter().any(is_there)
}

fn describe(link: &Link, ip: IpAddr, entry: Option<&Entry>, ability: Ability) -> NetworkInterface {
    let is_rss = ability.is_rss || entry.is_some_and(|entry| entry.is_rss);
    NetworkInterface {
        if_index: link.index,
        capability: match is_rss {
            true => InterfaceCapability::RSS_CAPABLE,
            false => InterfaceCapability::NONE,
        },
        link_speed: entry.and_then(|entry| entry.speed).unwrap_or(ability.speed),
        address: match ip {
            IpAddr::V4(ip) => SocketAddress::V4(ip.octets()),
            IpAddr::V6(ip) => SocketAddress::V6(ip.octets()),
        },
    }
}

/// What sysfs tells of a link. A virtual one tells no speed, or -1.
fn ability(link: &Link) -> Ability {
    let folder = format!("/sys/class/net/{}", link.name);
    let speed = fs::read_to_string(format!("{folder}/speed"));
    let megabits = speed.ok().and_then(|text| text.trim().parse::<u64>().ok());
    let is_queue = |name: &str| name.starts_with("rx-");
    let queues = fs::read_dir(format!("{folder}/queues")).map_or(0, |entries| {
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        names.filter(|name| is_queue(name)).count()
    });
    Ability {
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

    fn told(entries: &[&str], listen: &[&str]) -> Vec<(SocketAddress, u64, bool)> {
        let (links, addresses) = world();
        let entries: Vec<Entry> = entries.iter().map(|e| e.parse().expect("good")).collect();
        let listen: Vec<IpAddr> = listen.iter().map(|ip| ip.parse().expect("an ip")).collect();
        let ability = |_: &Link| Ability {
            speed: 10,
            is_rss: false,
        };
        let list = select(&entries, &listen, &links, &addresses, ability);
        let told = list.iter().map(|interface| {
            let is_rss = interface.capability == InterfaceCapability::RSS_CAPABLE;
            (interface.address, interface.link_speed, is_rss)
        });
        told.collect()
    }

    #[test]
    fn addresses_that_are_listened_on_are_told() {
        let eth0 = (SocketAddress::V4([192, 0, 2, 7]), 10, false);
        let eth0_v6 = "2001:db8::7".parse::<std::net::Ipv6Addr>().expect("an ip");
        let eth0_v6 = (SocketAddress::V6(eth0_v6.octets()), 10, false);
        let lo = (SocketAddress::V4([127, 0, 0, 1]), 10, false);
        assert_eq!(told(&[], &["0.0.0.0"]), [eth0]);
        assert_eq!(told(&[], &["0.0.0.0", "::"]), [eth0, eth0_v6]);
        assert_eq!(told(&[], &["127.0.0.1"]), [lo]);
        assert_eq!(told(&[], &["127.0.0.1", "192.0.2.7"]), [eth0]);
        assert_eq!(told(&[], &["192.0.2.99"]), []);
    }

    #[test]
    fn the_configuration_chooses_and_overrides() {
        let rss = (SocketAddress::V4([192, 0, 2, 7]), 99, true);
        assert_eq!(told(&["eth0;speed=99;rss"], &["0.0.0.0"]), [rss]);
        let lo = (SocketAddress::V4([127, 0, 0, 1]), 10, true);
        assert_eq!(told(&["127.0.0.1; rss"], &["0.0.0.0"]), [lo]);
        assert_eq!(told(&["eth9"], &["0.0.0.0"]), []);
    }

    #[test]
    fn addresses_of_rdma_say_so() {
        let (links, addresses) = world();
        let listen = ["0.0.0.0".parse().expect("an ip")];
        let ability = |_: &Link| Ability {
            speed: 10,
            is_rss: true,
        };
        let mut list = select(&[], &listen, &links, &addresses, ability);
        mark(&mut list, &["192.0.2.9".parse().expect("an ip")]);
        assert_eq!(list[0].capability, InterfaceCapability::RSS_CAPABLE);
        mark(&mut list, &["192.0.2.7".parse().expect("an ip")]);
        let both = InterfaceCapability::RSS_CAPABLE | InterfaceCapability::RDMA_CAPABLE;
        assert_eq!(list[0].capability, both);
    }

    #[test]
    fn devices_count_where_somebody_listens() {
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
    fn an_entry_says_what_is_wrong_with_it() {
        for bad in ["", ";rss", "eth0;speed=0", "eth0;speed=fast", "eth0;rdma"] {
            assert!(bad.parse::<Entry>().is_err(), "{bad}");
        }
    }
}
