//! The network interfaces of this host and their addresses, from rtnetlink(7), and its TCP sockets,
//! from sock_diag(7).
//!
//! `getifaddrs` would be shorter, but it does not report which IPv6 addresses are unusable.

mod sockets;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, send,
    socket_with,
};

pub use self::sockets::{TcpSocket, tcp_sockets};

/// A network interface of this host, as the kernel reported it at the time of the query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Index of the interface, as in if_indextoname(3).
    pub index: u32,
    /// Name of the interface, for example `eth0`.
    pub name: String,
    /// Whether the interface is administratively up (IFF_UP).
    pub is_up: bool,
    /// Whether the interface is the loopback interface (IFF_LOOPBACK).
    pub is_loopback: bool,
}

/// An IP address of this host on a network interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// Index of the interface with the address: its [`Link::index`].
    pub index: u32,
    /// The address of this host on the interface.
    pub ip: IpAddr,
}

/// Size of the receive buffer in bytes. The kernel sends at most 32 KiB in one answer.
const BUFFER: usize = 64 << 10;
/// Most answers to one request: enough for about 100,000 interfaces.
const MAX_ANSWERS: usize = 1024;
/// netlink(7), struct nlmsghdr.
const MESSAGE_HEADER: usize = 16;
const NLM_F_REQUEST: u16 = 0x1;
const NLM_F_DUMP: u16 = 0x300;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
/// rtnetlink(7).
const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
const RTM_NEWADDR: u16 = 20;
const RTM_GETADDR: u16 = 22;
/// Bytes of struct ifinfomsg and of struct ifaddrmsg.
const LINK_HEADER: usize = 16;
const ADDRESS_HEADER: usize = 8;
const IFLA_IFNAME: u16 = 3;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const IFF_UP: u32 = 0x1;
const IFF_LOOPBACK: u32 = 0x8;
/// Flags of addresses that are not usable yet or no longer: DADFAILED, DEPRECATED, TENTATIVE.
const UNUSABLE: u8 = 0x08 | 0x20 | 0x40;

/// Lists every network interface.
///
/// # Errors
/// The kernel refuses the request, or its answer is malformed.
pub fn links() -> io::Result<Vec<Link>> {
    let mut links = Vec::new();
    dump(None, RTM_GETLINK, &[0; LINK_HEADER], |kind, body| {
        if kind == RTM_NEWLINK {
            links.extend(link(body));
        }
    })?;
    Ok(links)
}

/// Lists the addresses of all network interfaces of this host. Omits IPv6 addresses that the kernel
/// marks as tentative, duplicate or deprecated.
///
/// # Errors
/// The kernel refuses the request, or its answer is malformed.
pub fn addresses() -> io::Result<Vec<Address>> {
    let mut addresses = Vec::new();
    dump(None, RTM_GETADDR, &[0; ADDRESS_HEADER], |kind, body| {
        if kind == RTM_NEWADDR {
            addresses.extend(address(body));
        }
    })?;
    Ok(addresses)
}

/// Requests a dump of one object type from a protocol of netlink; `None` is rtnetlink. Calls `take`
/// with the type and the body of each message.
fn dump(
    protocol: Option<Protocol>,
    request_type: u16,
    request_body: &[u8],
    mut take: impl FnMut(u16, &[u8]),
) -> io::Result<()> {
    let flags = SocketFlags::CLOEXEC;
    let netlink = AddressFamily::NETLINK;
    let socket = socket_with(netlink, SocketType::RAW, flags, protocol)?;
    bind(&socket, &SocketAddrNetlink::new(0, 0))?;
    let len = MESSAGE_HEADER + request_body.len();
    let mut request = Vec::with_capacity(len);
    request.extend((len as u32).to_ne_bytes());
    request.extend(request_type.to_ne_bytes());
    request.extend((NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes());
    // Sequence number and port: zero.
    request.resize(MESSAGE_HEADER, 0);
    request.extend(request_body);
    send(&socket, &request, SendFlags::empty())?;
    let mut buffer = vec![0; BUFFER];
    for _ in 0..MAX_ANSWERS {
        let (_, received) = recv(&socket, buffer.as_mut_slice(), RecvFlags::empty())?;
        let answer = buffer.get(..received).ok_or(io::ErrorKind::InvalidData)?;
        if !messages(answer, &mut take)? {
            return Ok(());
        }
    }
    Err(io::ErrorKind::InvalidData.into())
}

/// Calls `take` for each message of one answer. Returns true if more answers follow.
fn messages(answer: &[u8], take: &mut impl FnMut(u16, &[u8])) -> io::Result<bool> {
    let mut left = answer;
    while let (Some(len), Some(kind)) = (u32_at(left, 0), u16_at(left, 4)) {
        let message = left.get(MESSAGE_HEADER..len as usize);
        let body = message.ok_or(io::ErrorKind::InvalidData)?;
        match kind {
            NLMSG_DONE => return Ok(false),
            NLMSG_ERROR => {
                let errno = u32_at(body, 0).unwrap_or_default() as i32;
                return Err(io::Error::from_raw_os_error(errno.saturating_neg()));
            }
            _ => take(kind, body),
        }
        left = left.get(aligned(len as usize)..).unwrap_or_default();
    }
    Ok(true)
}

fn link(body: &[u8]) -> Option<Link> {
    let flags = u32_at(body, 8)?;
    let name = attribute(body.get(LINK_HEADER..)?, IFLA_IFNAME)?;
    let name = name.split(|byte| *byte == 0).next()?;
    Some(Link {
        index: u32_at(body, 4)?,
        name: String::from_utf8(name.to_vec()).ok()?,
        is_up: flags & IFF_UP != 0,
        is_loopback: flags & IFF_LOOPBACK != 0,
    })
}

fn address(body: &[u8]) -> Option<Address> {
    if body.get(2)? & UNUSABLE != 0 {
        return None;
    }
    let attributes = body.get(ADDRESS_HEADER..)?;
    // On a point-to-point link, IFA_ADDRESS is the address of the peer.
    let bytes = attribute(attributes, IFA_LOCAL).or_else(|| attribute(attributes, IFA_ADDRESS))?;
    let ip = match bytes.len() {
        4 => Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?).into(),
        16 => Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).into(),
        _ => return None,
    };
    let index = u32_at(body, 4)?;
    Some(Address { index, ip })
}

/// Finds the first attribute of the wanted type.
fn attribute(attributes: &[u8], wanted: u16) -> Option<&[u8]> {
    let mut left = attributes;
    loop {
        let len = usize::from(u16_at(left, 0)?);
        let data = left.get(4..len)?;
        // The two highest bits are flags.
        if u16_at(left, 2)? & 0x3FFF == wanted {
            return Some(data);
        }
        left = left.get(aligned(len)..)?;
    }
}

/// Messages and attributes start at multiples of 4.
fn aligned(len: usize) -> usize {
    len.next_multiple_of(4)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at + 2)?;
    Some(u16::from_ne_bytes(bytes.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?;
    Some(u32::from_ne_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_listed() {
        let links = links().expect("the kernel answers");
        let lo = links.iter().find(|link| link.is_loopback).expect("lo");
        assert_eq!(lo.name, "lo");
        let ip = IpAddr::from([127, 0, 0, 1]);
        let expected = Address {
            index: lo.index,
            ip,
        };
        let addresses = addresses().expect("the kernel answers");
        assert!(!lo.is_up || addresses.contains(&expected));
    }

    #[test]
    fn truncated_messages_are_ignored() {
        assert_eq!(link(&[0; 15]), None);
        assert_eq!(address(&[0; 3]), None);
        assert_eq!(attribute(&[3, 0, 1, 0], 1), None);
        assert_eq!(attribute(&[255, 255, 1, 0], 1), None);
        let mut kinds = Vec::new();
        let cut = messages(&[255, 0, 0, 0, 16, 0, 0, 0], &mut |kind, _| {
            kinds.push(kind);
        });
        assert!(cut.is_err());
        assert!(kinds.is_empty());
    }
}
