//! The addresses of this host that belong to RDMA devices.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ptr;

use super::channel::{Id, check};
use super::device::network;
use super::library::Library;
use super::raw_address::{RawAddress, socket_address};
use crate::provider::Network;

/// The addresses of this host that belong to RDMA devices, and the network of each device.
///
/// RDMA-CM finds the device: an identifier that binds to an address of a device's network interface
/// has that device. Loopback addresses are left out: RDMA-CM accepts any device for them, and only
/// this host reaches them.
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
        // SAFETY: an entry of the list, which stays allocated until it is freed below.
        let entry = unsafe { &*next };
        found.extend(interface_address(entry));
        next = entry.ifa_next;
    }
    // SAFETY: this function owns the list, and nothing refers to it any more.
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
    // SAFETY: `bytes` is the size of an address of that family, and the storage is large enough for
    // every family.
    unsafe { ptr::copy_nonoverlapping(from, to, bytes) };
    socket_address(&storage)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_has_its_loopback_address() {
        let addresses = of_host().expect("the list");
        assert!(addresses.iter().any(|address| address.ip().is_loopback()));
    }
}
