//! Addresses to listen on. A link-local address of IPv6 has a zone: the interface that it is on.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::str::FromStr;

use net::netlink;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Check, Config, ConfigError};

/// An IP address that the server listens on. A link-local IPv6 address has a zone: the network
/// interface. The text form is `ADDRESS` or `ADDRESS%INTERFACE`. RFC 4007, 11
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct ListenAddress {
    /// The IPv4 or IPv6 address, without its zone.
    pub ip: IpAddr,
    /// Name or index of the network interface of a link-local IPv6 address; `None` for other
    /// addresses.
    pub zone: Option<String>,
}

impl FromStr for ListenAddress {
    type Err = String;

    /// Parses `ADDRESS` or `ADDRESS%INTERFACE`. RFC 4007, 11. The forms of URLs are accepted, too:
    /// brackets, and `%25` for `%`. RFC 6874, 2
    fn from_str(text: &str) -> Result<Self, String> {
        let inner = text
            .strip_prefix('[')
            .and_then(|text| text.strip_suffix(']'));
        let (ip, zone) = match inner.unwrap_or(text).split_once('%') {
            Some((ip, zone)) => (ip, Some(zone)),
            None => (inner.unwrap_or(text), None),
        };
        let invalid = |why| format!("`{text}` is not an IP address{why}");
        let ip: IpAddr = ip.parse().map_err(|_| invalid(""))?;
        let zone = zone.map(|zone| {
            let encoded = zone.strip_prefix("25").filter(|zone| !zone.is_empty());
            encoded.unwrap_or(zone).to_owned()
        });
        if zone.as_deref() == Some("") || zone.is_some() && ip.is_ipv4() {
            return Err(invalid(
                ": an interface after `%` belongs to an address of IPv6",
            ));
        }
        Ok(Self { ip, zone })
    }
}

impl TryFrom<String> for ListenAddress {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<ListenAddress> for String {
    fn from(address: ListenAddress) -> Self {
        address.to_string()
    }
}

impl From<IpAddr> for ListenAddress {
    fn from(ip: IpAddr) -> Self {
        Self { ip, zone: None }
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.ip.fmt(f)?;
        self.zone.iter().try_for_each(|zone| write!(f, "%{zone}"))
    }
}

impl ListenAddress {
    /// The socket address with a port.
    ///
    /// # Errors
    /// No interface has the name of the zone.
    pub(crate) fn socket(&self, port: u16) -> io::Result<SocketAddr> {
        let IpAddr::V6(ip) = self.ip else {
            return Ok(SocketAddr::new(self.ip, port));
        };
        let zone = self.zone.as_deref().map_or(Ok(0), index_of_zone)?;
        Ok(SocketAddrV6::new(ip, port, 0, zone).into())
    }
}

fn index_of_zone(zone: &str) -> io::Result<u32> {
    if let Ok(index) = zone.parse() {
        return Ok(index);
    }
    let links = netlink::links()?;
    let link = links.iter().find(|link| link.name == zone);
    let missing = || io::Error::new(io::ErrorKind::NotFound, format!("no interface `{zone}`"));
    link.map(|link| link.index).ok_or_else(missing)
}

impl Config {
    /// Returns the addresses that the server listens on: those of `server.listen`, or all IPv4 and
    /// IPv6 addresses if that key is not set.
    pub fn listen(&self) -> Vec<ListenAddress> {
        let all = || {
            let families: [IpAddr; 2] =
                [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
            families.map(ListenAddress::from).to_vec()
        };
        self.server.listen.clone().unwrap_or_else(all)
    }

    /// The IP addresses to listen on, without zones.
    pub(crate) fn listen_ips(&self) -> Vec<IpAddr> {
        self.listen().iter().map(|address| address.ip).collect()
    }
}

impl Check<'_> {
    pub(super) fn listen(&self, addresses: Option<&[ListenAddress]>) -> Result<(), ConfigError> {
        let failed = |what| Err(self.error_of_key("server.listen", what));
        if addresses.is_some_and(<[_]>::is_empty) {
            return failed("server.listen: the list is empty".to_owned());
        }
        for (index, address) in addresses.unwrap_or_default().iter().enumerate() {
            if addresses.unwrap_or_default()[..index].contains(address) {
                return failed(format!("server.listen: the list has {address} twice"));
            }
            let is_link_local = |ip: Ipv6Addr| ip.is_unicast_link_local();
            if let (IpAddr::V6(ip), None) = (address.ip, &address.zone)
                && is_link_local(ip)
            {
                return failed(format!(
                    "server.listen: {address} is a link-local address: add its interface, \
                     as in {address}%eth0"
                ));
            }
            if let Err(error) = address.socket(0) {
                return failed(format!("server.listen: {address}: {error}"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn parse(list: &str) -> Result<Vec<ListenAddress>, String> {
        let text = format!("[server]\nlisten = {list}\n");
        let config = Config::parse(Path::new("smbeam.toml"), &text);
        config
            .map(|config| config.listen())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn both_families_are_the_default() {
        let config = Config::parse(Path::new("smbeam.toml"), "").expect("good");
        let ips: Vec<String> = config.listen().iter().map(ToString::to_string).collect();
        assert_eq!(ips, ["0.0.0.0", "::"]);
    }

    #[test]
    fn a_link_local_address_has_an_interface() {
        for text in [
            "fe80::5%lo",
            "fe80::5%25lo",
            "[fe80::5%25lo]",
            "[fe80::5%lo]",
        ] {
            let address: ListenAddress = text.parse().expect(text);
            assert_eq!(address.to_string(), "fe80::5%lo");
        }
        let address = parse("[\"fe80::5%lo\"]").expect("good").remove(0);
        let SocketAddr::V6(socket) = address.socket(445).expect("lo exists") else {
            panic!("not IPv6");
        };
        assert_eq!((socket.port(), socket.scope_id()), (445, 1));
        let numbered: ListenAddress = "fe80::5%7".parse().expect("good");
        assert!(matches!(numbered.socket(1), Ok(SocketAddr::V6(v6)) if v6.scope_id() == 7));
        let error = parse("[\"fe80::5\"]").expect_err("no interface");
        assert!(
            error.contains("add its interface, as in fe80::5%eth0"),
            "{error}"
        );
        let error = parse("[\"fe80::5%nosuch0\"]").expect_err("no such interface");
        assert!(error.contains("no interface `nosuch0`"), "{error}");
    }

    #[test]
    fn bad_addresses_are_errors() {
        for bad in [
            "[]",
            "[\"nas\"]",
            "[\"1.2.3.4%lo\"]",
            "[\"::1%\"]",
            "[\"[::1\"]",
            "[\"\"]",
            "[\"::1\", \"0:0::1\"]",
            "[\"1.2.3.4:445\"]",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        let error = parse("[\"nas\"]").expect_err("a name");
        assert_eq!(
            error,
            "smbeam.toml, line 2: server.listen: `nas` is not an IP address"
        );
    }
}
