//! Rules about the addresses of clients.

use alloc::vec::Vec;
use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::str::FromStr;

/// A network of IP addresses, such as `192.0.2.0/24`, or a single address. An IPv4-mapped IPv6
/// address counts as the IPv4 address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// The first address of the network.
    first: IpAddr,
    /// Number of the leading bits that all addresses of the network share.
    prefix: u32,
}

/// Why a text is not a [`Network`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkError {
    /// The part before `/`, or the whole text, is not an IP address.
    Address,
    /// The length of the prefix is not a number up to 32 (IPv4) or 128 (IPv6).
    Prefix,
    /// The address has bits beyond the prefix. The value is the network with this prefix.
    HostBits(Network),
}

/// The rules of a server or a share about the addresses of its clients, as Samba has them
/// (smb.conf(5), `hosts allow` and `hosts deny`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostRules {
    /// Networks from which clients may connect, even if `deny` has them.
    pub allow: Vec<Network>,
    /// Networks from which clients may not connect.
    pub deny: Vec<Network>,
}

impl Network {
    /// Returns true if the network has this address.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.first, address.to_canonical()) {
            (IpAddr::V4(first), IpAddr::V4(address)) => masked_v4(address, self.prefix) == first,
            (IpAddr::V6(first), IpAddr::V6(address)) => masked_v6(address, self.prefix) == first,
            _ => false,
        }
    }
}

impl HostRules {
    /// Returns true if a client with this address may connect:
    ///
    /// - `allow` decides before `deny`.
    /// - With `allow` alone, no other client may connect. A client of the machine itself (loopback)
    ///   may, because only `deny` refuses it.
    /// - With `deny`, every other client may connect.
    ///
    /// A client without an address may connect only without rules.
    pub fn admit(&self, address: Option<IpAddr>) -> bool {
        let Self { allow, deny } = self;
        let Some(address) = address else {
            return allow.is_empty() && deny.is_empty();
        };
        let has = |networks: &[Network]| networks.iter().any(|network| network.contains(address));
        if has(allow) {
            return true;
        }
        if address.to_canonical().is_loopback() || !deny.is_empty() {
            return !has(deny);
        }
        allow.is_empty()
    }
}

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| NetworkError::Address)?;
        let prefix = prefix.map(parse_prefix).transpose()?;
        // ::ffff:192.0.2.0/120 is the network 192.0.2.0/24 in the form of an IPv6 socket.
        let is_mapped = address.is_ipv6() && address.to_canonical().is_ipv4();
        let canonical = match (is_mapped, prefix) {
            (true, Some(..MAPPED_BITS)) => address,
            _ => address.to_canonical(),
        };
        let bits = if canonical.is_ipv4() { 32 } else { 128 };
        let prefix = match (prefix, is_mapped && canonical.is_ipv4()) {
            (Some(prefix), true) => prefix - MAPPED_BITS,
            (Some(prefix), false) => prefix,
            (None, _) => bits,
        };
        if prefix > bits {
            return Err(NetworkError::Prefix);
        }
        let first = match canonical {
            IpAddr::V4(address) => IpAddr::V4(masked_v4(address, prefix)),
            IpAddr::V6(address) => IpAddr::V6(masked_v6(address, prefix)),
        };
        let network = Self { first, prefix };
        match first == canonical {
            true => Ok(network),
            false => Err(NetworkError::HostBits(network)),
        }
    }
}

/// Number of the bits before the IPv4 address in an IPv4-mapped IPv6 address. RFC 4291, 2.5.5.2
const MAPPED_BITS: u32 = 96;

/// The length of a prefix in decimal digits, without a sign.
fn parse_prefix(text: &str) -> Result<u32, NetworkError> {
    let is_number = text.bytes().all(|digit| digit.is_ascii_digit());
    let prefix = text.parse().map_err(|_| NetworkError::Prefix)?;
    match is_number && prefix <= 128 {
        true => Ok(prefix),
        false => Err(NetworkError::Prefix),
    }
}

fn masked_v4(address: Ipv4Addr, prefix: u32) -> Ipv4Addr {
    let mask = u32::MAX.checked_shl(32 - prefix).unwrap_or(0);
    Ipv4Addr::from_bits(address.to_bits() & mask)
}

fn masked_v6(address: Ipv6Addr, prefix: u32) -> Ipv6Addr {
    let mask = u128::MAX.checked_shl(128 - prefix).unwrap_or(0);
    Ipv6Addr::from_bits(address.to_bits() & mask)
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.prefix)
    }
}

impl fmt::Display for NetworkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address => f.write_str("not an IP address"),
            Self::Prefix => f.write_str("the prefix is not a number up to 32 (IPv4) or 128 (IPv6)"),
            Self::HostBits(network) => {
                write!(f, "the address has bits beyond the prefix: use {network}")
            }
        }
    }
}

impl core::error::Error for NetworkError {}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    fn network(text: &str) -> Network {
        text.parse().expect("a network")
    }

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn a_network_has_the_addresses_of_its_prefix() {
        for (text, inside, outside) in [
            ("192.0.2.0/24", "192.0.2.255", "192.0.3.0"),
            ("192.0.2.0/24", "::ffff:192.0.2.1", "::ffff:192.0.3.1"),
            ("::ffff:192.0.2.0/120", "192.0.2.9", "192.0.3.9"),
            ("192.0.2.7", "192.0.2.7", "192.0.2.6"),
            ("192.0.2.7/32", "192.0.2.7", "192.0.2.8"),
            ("0.0.0.0/0", "255.255.255.255", "::1"),
            ("::/0", "fe80::1", "192.0.2.1"),
            ("2001:db8::/32", "2001:db8:ffff::1", "2001:db9::"),
            ("2001:db8::7", "2001:db8::7", "2001:db8::8"),
        ] {
            let network = network(text);
            assert!(network.contains(address(inside)), "{text} {inside}");
            assert!(!network.contains(address(outside)), "{text} {outside}");
        }
    }

    #[test]
    fn texts_that_are_no_network_are_refused() {
        for (text, expected) in [
            ("", NetworkError::Address),
            ("nas.example", NetworkError::Address),
            ("192.0.2", NetworkError::Address),
            ("192.0.2.0/", NetworkError::Prefix),
            ("192.0.2.0/33", NetworkError::Prefix),
            ("192.0.2.0/+8", NetworkError::Prefix),
            ("192.0.2.0/255.255.255.0", NetworkError::Prefix),
            ("2001:db8::/129", NetworkError::Prefix),
            ("fe80::1%2", NetworkError::Address),
        ] {
            assert_eq!(text.parse::<Network>(), Err(expected), "{text}");
        }
        let error = "192.0.2.7/24".parse::<Network>().expect_err("host bits");
        let expected = "the address has bits beyond the prefix: use 192.0.2.0/24";
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn rules_decide_as_documented() {
        let rules = |allow: &[&str], deny: &[&str]| HostRules {
            allow: allow.iter().map(|text| network(text)).collect(),
            deny: deny.iter().map(|text| network(text)).collect(),
        };
        let (inner, outer) = ("192.0.2.0/24", "198.51.100.0/24");
        for (allow, deny, client, expected) in [
            (&[][..], &[][..], "192.0.2.1", true),
            (&[inner], &[], "192.0.2.1", true),
            (&[inner], &[], "198.51.100.1", false),
            (&[inner], &[], "127.0.0.1", true),
            (&[inner], &[], "::ffff:127.0.0.1", true),
            (&[inner], &[], "::1", true),
            (&[inner], &["127.0.0.0/8"], "127.0.0.1", false),
            (&["127.0.0.1"], &["127.0.0.0/8"], "127.0.0.1", true),
            (&["127.0.0.1"], &["127.0.0.0/8"], "127.0.0.2", false),
            (&[], &[inner], "192.0.2.1", false),
            (&[], &[inner], "198.51.100.1", true),
            (&["192.0.2.7"], &[inner], "192.0.2.7", true),
            (&["192.0.2.7"], &[inner], "192.0.2.8", false),
            (&[inner], &[outer], "203.0.113.1", true),
        ] {
            let rules = rules(allow, deny);
            assert_eq!(
                rules.admit(Some(address(client))),
                expected,
                "{rules:?} {client}"
            );
        }
        assert!(rules(&[], &[]).admit(None));
        assert!(!rules(&[inner], &[]).admit(None));
        assert!(!rules(&[], &[inner]).admit(None));
    }
}
