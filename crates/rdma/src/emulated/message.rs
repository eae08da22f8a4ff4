//! What two queue pairs of the emulation say to each other: a header, and for a SEND its bytes.
//!
//! Both ends are on one machine and built from one source or two that say the same version, so
//! numbers are in the order of the machine.

use crate::provider::Failure;

/// Bytes of a header.
pub(crate) const HEADER_BYTES: usize = 24;
/// What both ends have to speak.
pub(crate) const VERSION: u32 = 1;

/// What is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Say {
    /// First, both ways: the version. The connection is there when both have said it.
    Hello { version: u32 },
    /// Nothing but the receives of the header.
    Posted,
    /// A message follows the header; a key that the receiver exposed is no more ours.
    Send { invalidate: Option<u32> },
    /// The receiver may read or write this memory of the sender from now on.
    Announce(Announced),
    /// The receiver may not any more, and is to answer `Withdrawn`.
    Withdraw { key: u32 },
    /// The sender does not touch the receiver's memory of that key any more.
    Withdrawn { key: u32 },
}

/// Memory of the sender's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Announced {
    pub(crate) key: u32,
    pub(crate) address: u64,
    pub(crate) length: u32,
    /// It may be written; else it may be read.
    pub(crate) is_to_write: bool,
}

/// A header: what is said, and how many receives more were posted before it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) posted: u32,
    pub(crate) say: Say,
}

const HELLO: u8 = 1;
const POSTED: u8 = 2;
const SEND: u8 = 3;
const SEND_AND_INVALIDATE: u8 = 4;
const ANNOUNCE_TO_READ: u8 = 5;
const ANNOUNCE_TO_WRITE: u8 = 6;
const WITHDRAW: u8 = 7;
const WITHDRAWN: u8 = 8;

impl Header {
    pub(crate) fn encode(&self) -> [u8; HEADER_BYTES] {
        let (kind, key, length, address) = match self.say {
            Say::Hello { version } => (HELLO, version, 0, 0),
            Say::Posted => (POSTED, 0, 0, 0),
            Say::Send { invalidate: None } => (SEND, 0, 0, 0),
            Say::Send {
                invalidate: Some(key),
            } => (SEND_AND_INVALIDATE, key, 0, 0),
            Say::Announce(region) if region.is_to_write => {
                (ANNOUNCE_TO_WRITE, region.key, region.length, region.address)
            }
            Say::Announce(region) => (ANNOUNCE_TO_READ, region.key, region.length, region.address),
            Say::Withdraw { key } => (WITHDRAW, key, 0, 0),
            Say::Withdrawn { key } => (WITHDRAWN, key, 0, 0),
        };
        let mut bytes = [0; HEADER_BYTES];
        bytes[0] = kind;
        bytes[4..8].copy_from_slice(&self.posted.to_ne_bytes());
        bytes[8..12].copy_from_slice(&key.to_ne_bytes());
        bytes[12..16].copy_from_slice(&length.to_ne_bytes());
        bytes[16..24].copy_from_slice(&address.to_ne_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<Self, Failure> {
        let u32_at = |at: usize| {
            let field = bytes[at..at + 4].try_into().expect("four bytes");
            u32::from_ne_bytes(field)
        };
        let address = u64::from_ne_bytes(bytes[16..24].try_into().expect("eight bytes"));
        let (key, length) = (u32_at(8), u32_at(12));
        let announced = |is_to_write| Announced {
            key,
            address,
            length,
            is_to_write,
        };
        let say = match bytes[0] {
            HELLO => Say::Hello { version: key },
            POSTED => Say::Posted,
            SEND => Say::Send { invalidate: None },
            SEND_AND_INVALIDATE => Say::Send {
                invalidate: Some(key),
            },
            ANNOUNCE_TO_READ => Say::Announce(announced(false)),
            ANNOUNCE_TO_WRITE => Say::Announce(announced(true)),
            WITHDRAW => Say::Withdraw { key },
            WITHDRAWN => Say::Withdrawn { key },
            kind => return Err(Failure::Protocol(format!("a message of kind {kind}"))),
        };
        Ok(Self {
            posted: u32_at(4),
            say,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_survive_the_round_trip() {
        let region = |is_to_write| Announced {
            key: 0x1122_3344,
            address: 0x5566_7788_99AA_BBCC,
            length: 0xDDEE_FF00,
            is_to_write,
        };
        let says = [
            Say::Hello { version: 7 },
            Say::Posted,
            Say::Send { invalidate: None },
            Say::Send {
                invalidate: Some(0),
            },
            Say::Announce(region(false)),
            Say::Announce(region(true)),
            Say::Withdraw { key: 5 },
            Say::Withdrawn { key: u32::MAX },
        ];
        for say in says {
            let header = Header {
                posted: 0x0102_0304,
                say,
            };
            assert_eq!(Header::decode(&header.encode()), Ok(header));
        }
        let mut unknown = [0; HEADER_BYTES];
        for kind in [0, WITHDRAWN + 1, 255] {
            unknown[0] = kind;
            assert!(matches!(
                Header::decode(&unknown),
                Err(Failure::Protocol(_))
            ));
        }
    }
}
