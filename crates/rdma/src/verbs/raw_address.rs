//! Socket addresses in the form of the C library.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// A socket address in the layout of the C library.
pub(super) struct RawAddress(libc::sockaddr_storage);

impl RawAddress {
    /// A pointer for calls that only read the address, also those that declare it as mutable.
    pub(super) fn pointer(&self) -> *mut libc::sockaddr {
        (&raw const self.0).cast::<libc::sockaddr>().cast_mut()
    }
}

impl From<SocketAddr> for RawAddress {
    fn from(address: SocketAddr) -> Self {
        // SAFETY: all bits zero is an address of no family.
        let mut storage: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
        let position = &raw mut storage;
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
                // SAFETY: `sockaddr_storage` has the size and the alignment for every address.
                unsafe { position.cast::<libc::sockaddr_in>().write(raw) };
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
                unsafe { position.cast::<libc::sockaddr_in6>().write(raw) };
            }
        }
        Self(storage)
    }
}

/// Converts an address. `None` if the family is neither IPv4 nor IPv6.
pub(super) fn socket_address(storage: &libc::sockaddr_storage) -> Option<SocketAddr> {
    let position = &raw const *storage;
    match i32::from(storage.ss_family) {
        libc::AF_INET => {
            // SAFETY: the storage has the size and the alignment for every address, and the family
            // identifies this one.
            let raw = unsafe { &*position.cast::<libc::sockaddr_in>() };
            let ip = Ipv4Addr::from(raw.sin_addr.s_addr.to_ne_bytes());
            Some(SocketAddrV4::new(ip, u16::from_be(raw.sin_port)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let raw = unsafe { &*position.cast::<libc::sockaddr_in6>() };
            let ip = Ipv6Addr::from(raw.sin6_addr.s6_addr);
            let (port, scope) = (u16::from_be(raw.sin6_port), raw.sin6_scope_id);
            Some(SocketAddrV6::new(ip, port, raw.sin6_flowinfo, scope).into())
        }
        _ => None,
    }
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
}
