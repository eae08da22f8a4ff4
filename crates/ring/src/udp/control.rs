//! Control messages: metadata of datagrams between the kernel and the process. cmsg(3)
//!
//! They are read and written as bytes: a length of one word, a level, a type, then the value, all
//! aligned to words.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

/// Bytes of a word.
const WORD: usize = size_of::<usize>();
/// Bytes before a value.
const HEAD: usize = WORD + 8;
/// Bytes reserved for all control messages of one batch, in either direction.
pub(crate) const CONTROL_BYTES: usize = 128;

/// Metadata of received datagrams.
pub(crate) struct Meta {
    pub(crate) peer: SocketAddr,
    pub(crate) local: Option<IpAddr>,
    pub(crate) ecn: u8,
    /// Bytes of each datagram, if the batch has more than one.
    pub(crate) segment: Option<usize>,
}

impl Meta {
    /// Parses the metadata. `None` if nothing was received or the sender's address is unknown.
    pub(crate) fn new(name: &[u8], control: &[u8], length: usize) -> Option<Self> {
        let peer = address(name)?;
        let mut meta = Self {
            peer,
            local: None,
            ecn: 0,
            segment: None,
        };
        for (level, kind, value) in messages(control) {
            meta.note(level, kind, value);
        }
        (length > 0).then_some(meta)
    }

    fn note(&mut self, level: i32, kind: i32, value: &[u8]) {
        match (level, kind) {
            (libc::IPPROTO_IP, libc::IP_TOS) | (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                // Kernels write one byte or an int; the value is in the lowest byte.
                let byte = match value.first_chunk::<4>() {
                    Some(bytes) => i32::from_ne_bytes(*bytes) as u8,
                    None => value.first().copied().unwrap_or(0),
                };
                self.ecn = byte & 0b11;
            }
            // struct in_pktinfo: interface, local address for replies, destination address of the
            // header.
            (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                let header = value.get(8..).and_then(|rest| rest.first_chunk::<4>());
                self.local = header.map(|octets| IpAddr::from(*octets));
            }
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                let octets = value.first_chunk::<16>();
                self.local = octets.map(|octets| IpAddr::from(*octets));
            }
            (libc::SOL_UDP, libc::UDP_GRO) => {
                let size = value
                    .first_chunk::<4>()
                    .map(|bytes| i32::from_ne_bytes(*bytes));
                self.segment = size.and_then(|size| usize::try_from(size).ok());
            }
            _ => {}
        }
    }
}

/// Iterates over control messages. A truncated message ends the iteration.
fn messages(mut control: &[u8]) -> impl Iterator<Item = (i32, i32, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from_ne_bytes(*control.first_chunk()?);
        let int = |at: usize| {
            let bytes = control.get(at..).and_then(|rest| rest.first_chunk());
            bytes.map(|bytes| i32::from_ne_bytes(*bytes))
        };
        let (level, kind) = (int(WORD)?, int(WORD + 4)?);
        let value = control.get(HEAD..length)?;
        control = control.get(length.next_multiple_of(WORD)..).unwrap_or(&[]);
        Some((level, kind, value))
    })
}

/// Converts an address from the kernel's form: sockaddr_in or sockaddr_in6.
fn address(name: &[u8]) -> Option<SocketAddr> {
    let family = u16::from_ne_bytes(*name.first_chunk()?);
    let port = u16::from_be_bytes(*name.get(2..)?.first_chunk()?);
    match i32::from(family) {
        libc::AF_INET => {
            let octets: [u8; 4] = *name.get(4..)?.first_chunk()?;
            Some(SocketAddr::new(Ipv4Addr::from(octets).into(), port))
        }
        libc::AF_INET6 => {
            let flow = u32::from_ne_bytes(*name.get(4..)?.first_chunk()?);
            let octets: [u8; 16] = *name.get(8..)?.first_chunk()?;
            let scope = u32::from_ne_bytes(*name.get(24..)?.first_chunk()?);
            let address = SocketAddrV6::new(Ipv6Addr::from(octets), port, flow, scope);
            Some(SocketAddr::V6(address))
        }
        _ => None,
    }
}

/// Control messages to send.
#[repr(align(8))]
pub(crate) struct Control {
    bytes: [u8; CONTROL_BYTES],
    length: usize,
}

impl Control {
    /// Control messages for a batch of datagrams of `segment` bytes from `local`. `is_ipv4` is the
    /// family of the socket.
    pub(crate) fn new(is_ipv4: bool, segment: Option<u16>, local: Option<IpAddr>, ecn: u8) -> Self {
        let mut control = Self {
            bytes: [0; CONTROL_BYTES],
            length: 0,
        };
        if ecn != 0 {
            let (level, kind) = if is_ipv4 {
                (libc::IPPROTO_IP, libc::IP_TOS)
            } else {
                (libc::IPPROTO_IPV6, libc::IPV6_TCLASS)
            };
            control.push(level, kind, &i32::from(ecn).to_ne_bytes());
        }
        if let Some(segment) = segment {
            control.push(libc::SOL_UDP, libc::UDP_SEGMENT, &segment.to_ne_bytes());
        }
        match local {
            Some(IpAddr::V4(local)) if is_ipv4 => {
                let mut info = [0; 12];
                info[4..8].copy_from_slice(&local.octets());
                control.push(libc::IPPROTO_IP, libc::IP_PKTINFO, &info);
            }
            Some(IpAddr::V6(local)) if !is_ipv4 => {
                let mut info = [0; 20];
                info[..16].copy_from_slice(&local.octets());
                control.push(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, &info);
            }
            _ => {}
        }
        control
    }

    fn push(&mut self, level: i32, kind: i32, value: &[u8]) {
        let message = &mut self.bytes[self.length..];
        let length = HEAD + value.len();
        message[..WORD].copy_from_slice(&length.to_ne_bytes());
        message[WORD..WORD + 4].copy_from_slice(&level.to_ne_bytes());
        message[WORD + 4..HEAD].copy_from_slice(&kind.to_ne_bytes());
        message[HEAD..length].copy_from_slice(value);
        self.length += length.next_multiple_of(WORD);
    }

    /// The encoded messages.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_messages_are_read_back() {
        let local = Some(IpAddr::from([127, 0, 0, 9]));
        let control = Control::new(true, Some(1200), local, 2);
        let seen: Vec<_> = messages(control.bytes())
            .map(|(level, kind, value)| (level, kind, value.len()))
            .collect();
        assert_eq!(
            seen,
            [
                (libc::IPPROTO_IP, libc::IP_TOS, 4),
                (libc::SOL_UDP, libc::UDP_SEGMENT, 2),
                (libc::IPPROTO_IP, libc::IP_PKTINFO, 12),
            ]
        );
        let name = [2, 0, 0x01, 0xBB, 10, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0];
        let meta = Meta::new(&name, control.bytes(), 1).expect("whole");
        assert_eq!(meta.peer, "10.0.0.7:443".parse().expect("an address"));
        assert_eq!(meta.ecn, 2);
    }

    #[test]
    fn a_cut_off_message_is_none() {
        let control = Control::new(false, None, Some(Ipv6Addr::LOCALHOST.into()), 1);
        // The last message is complete without its padding.
        let padding = size_of::<libc::c_int>();
        for length in 0..control.bytes().len() - padding {
            assert!(messages(&control.bytes()[..length]).count() <= 1);
        }
        let mut wrong = control.bytes().to_vec();
        wrong[..WORD].copy_from_slice(&usize::MAX.to_ne_bytes());
        assert_eq!(messages(&wrong).count(), 0);
        wrong[..WORD].copy_from_slice(&0_usize.to_ne_bytes());
        assert_eq!(messages(&wrong).count(), 0);
        assert!(address(&[]).is_none() && address(&[10, 0, 1, 1, 1]).is_none());
    }
}
