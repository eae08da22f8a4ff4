//! Addresses in the form of the C library, and which of this host's are a device's.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::ptr;

use super::channel::{Id, check};
use super::device::network;
use super::library::Library;
use crate::provider::Network;

/// An address as the C library wants it.
pub(super) struct RawAddress(libc::sockaddr_storage);

impl RawAddress {
    /// For calls that only read, whatever their declaration says.
    pub(super) fn pointer(&self) -> *mut libc::sockaddr {
        (&raw const self.0).cast::<libc::sockaddr>().cast_mut()
    }
}

impl From<SocketAddr> for RawAddress {
    fn from(address: SocketAddr) -> Self {
        // SAFETY: all bits zero is an address of no family.
        let mut storage: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
        let place = &raw mut storage;
        match address {
            SocketAddr::V4(address) => {
                let raw = libc::sockaddr_in {
                    sin_family: libc::AF_INET as libc::sa_family_t,
                    sin_port: address.port().to_be(),
                    sin_addr: libc::in_addr {
                        s_addr: u32::from_ne_bytes(address.ip().octets()),
                    },
                    sin_zero: [0; 8],
                };
                // SAFETY: `sockaddr_storage` has room and alignment for every address.
                unsafe { place.cast::<libc::sockaddr_in>().write(raw) };
            }
            SocketAddr::V6(address) => {
                let raw = libc::sockaddr_in6 {
                    sin6_family: libc::AF_INET6 as libc::sa_family_t,
                    sin6_port: address.port().to_be(),
                    sin6_flowinfo: address.flowinfo(),
                    sin6_addr: libc::in6_addr {
                        s6_addr: address.ip().octets(),
                    },
                    sin6_scope_id: address.scope_id(),
                };
                // SAFETY: as above.
                unsafe { place.cast::<libc::sockaddr_in6>().write(raw) };
            }
        }
        Self(storage)
    }
}

/// `None` for a family that is not the Internet's.
pub(super) fn socket_address(storage: &libc::sockaddr_storage) -> Option<SocketAddr> {
    let place = &raw const *storage;
    match i32::from(storage.ss_family) {
        libc::AF_INET => {
            // SAFETY: the storage has room and alignment for every address, and the family says
            // that it is this one.
            let raw = unsafe { &*place.cast::<libc::sockaddr_in>() };
            let ip = Ipv4Addr::from(raw.sin_addr.s_addr.to_ne_bytes());
            Some(SocketAddrV4::new(ip, u16::from_be(raw.sin_port)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let raw = unsafe { &*place.cast::<libc::sockaddr_in6>() };
            let ip = Ipv6Addr::from(raw.sin6_addr.s6_addr);
            let (port, scope) = (u16::from_be(raw.sin6_port), raw.sin6_scope_id);
            Some(SocketAddrV6::new(ip, port, raw.sin6_flowinfo, scope).into())
        }
        _ => None,
    }
}

/// The addresses of this host that are a device's, and what that speaks.
///
/// RDMA-CM knows: an identifier that binds to an address of a device's network interface has that
/// device. The loopback's addresses are left out: RDMA-CM takes any device for them, and nobody
/// else reaches them.
pub(super) fn of_devices(library: &'static Library) -> io::Result<Vec<(IpAddr, Network)>> {
    let mut found = Vec::new();
    for address in of_host()? {
        if address.ip().is_loopback() {
            continue;
        }
        let id = Id::new(library)?;
        if id.bind(&RawAddress::from(address)).is_err() {
            continue;
        }
        if let Some(context) = id.context() {
            // SAFETY: the device stays open as long as the identifier that is bound to it.
            found.push((address.ip(), unsafe { network(context) }));
        }
    }
    Ok(found)
}

/// All addresses of this host, with port 0.
fn of_host() -> io::Result<Vec<SocketAddr>> {
    let mut first = ptr::null_mut();
    // SAFETY: `first` is written on success.
    check(unsafe { libc::getifaddrs(&raw mut first) })?;
    let mut found = Vec::new();
    let mut next = first;
    while !next.is_null() {
        // SAFETY: an entry of the list, which lives until it is freed below.
        let entry = unsafe { &*next };
        found.extend(interface_address(entry));
        next = entry.ifa_next;
    }
    // SAFETY: the list is ours, and nothing refers to it any more.
    unsafe { libc::freeifaddrs(first) };
    Ok(found)
}

fn interface_address(entry: &libc::ifaddrs) -> Option<SocketAddr> {
    if entry.ifa_addr.is_null() {
        return None;
    }
    // SAFETY: every address starts with its family.
    let family = i32::from(unsafe { (*entry.ifa_addr).sa_family });
    let bytes = match family {
        libc::AF_INET => size_of::<libc::sockaddr_in>(),
        libc::AF_INET6 => size_of::<libc::sockaddr_in6>(),
        _ => return None,
    };
    // SAFETY: all bits zero is an address of no family.
    let mut storage: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
    let (from, to) = (entry.ifa_addr.cast::<u8>(), (&raw mut storage).cast::<u8>());
    // SAFETY: an address of that family has so many bytes, and the storage has room for every one.
    unsafe { ptr::copy_nonoverlapping(from, to, bytes) };
    socket_address(&storage)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_survive_the_form_of_c() {
        for text in ["192.0.2.7:445", "[2001:db8::7]:5445", "[fe80::1%3]:0"] {
            let address: SocketAddr = text.parse().expect("an address");
            let raw = RawAddress::from(address);
            assert_eq!(socket_address(&raw.0), Some(address));
        }
        // SAFETY: all bits zero is an address of no family.
        let nothing: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
        assert_eq!(socket_address(&nothing), None);
    }

    #[test]
    fn this_host_has_its_loopback_address() {
        let addresses = of_host().expect("the list");
        assert!(addresses.iter().any(|address| address.ip().is_loopback()));
    }
}
