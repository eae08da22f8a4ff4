//! The protocol between two emulated queue pairs: a header, and the payload of a SEND.
//!
//! Both peers run on one machine and have the same protocol version, so numbers are in the byte
//! order of the machine.

use crate::provider::Failure;

/// Bytes of a header.
pub(crate) const HEADER_BYTES: usize = 24;
/// Version of the protocol, which both peers must have.
pub(crate) const VERSION: u32 = 1;

/// A protocol message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// The first message in both directions: the version. The connection is open when both peers
    /// have sent it.
    Hello { version: u32 },
    /// No content except the receive count in the header.
    Posted,
    /// A message follows the header. The sender does not access the receiver's region of the key
    /// any more.
    Send { invalidate: Option<u32> },
    /// From now on the receiver may read or write this memory of the sender.
    Announce(Announced),
    /// The receiver must stop to access the region and answer with `Withdrawn`.
    Withdraw { key: u32 },
    /// The sender does not access the receiver's region of that key any more.
    Withdrawn { key: u32 },
}

/// Memory of the sender's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Announced {
    pub(crate) key: u32,
    pub(crate) address: u64,
    pub(crate) length: u32,
    /// Whether the peer may write it. Otherwise the peer may read it.
    pub(crate) is_to_write: bool,
}

/// A header: a message, and the number of receives posted since the last header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) posted: u32,
    pub(crate) message: Message,
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
        let (kind, key, length, address) = match self.message {
            Message::Hello { version } => (HELLO, version, 0, 0),
            Message::Posted => (POSTED, 0, 0, 0),
            Message::Send { invalidate: None } => (SEND, 0, 0, 0),
            Message::Send {
                invalidate: Some(key),
            } => (SEND_AND_INVALIDATE, key, 0, 0),
            Message::Announce(region) if region.is_to_write => {
                (ANNOUNCE_TO_WRITE, region.key, region.length, region.address)
            }
            Message::Announce(region) => {
                (ANNOUNCE_TO_READ, region.key, region.length, region.address)
            }
            Message::Withdraw { key } => (WITHDRAW, key, 0, 0),
            Message::Withdrawn { key } => (WITHDRAWN, key, 0, 0),
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
        let message = match bytes[0] {
            HELLO => Message::Hello { version: key },
            POSTED => Message::Posted,
            SEND => Message::Send { invalidate: None },
            SEND_AND_INVALIDATE => Message::Send {
                invalidate: Some(key),
            },
            ANNOUNCE_TO_READ => Message::Announce(announced(false)),
            ANNOUNCE_TO_WRITE => Message::Announce(announced(true)),
            WITHDRAW => Message::Withdraw { key },
            WITHDRAWN => Message::Withdrawn { key },
            kind => return Err(Failure::Protocol(format!("a message of kind {kind}"))),
        };
        Ok(Self {
            posted: u32_at(4),
            message,
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
        let messages = [
            Message::Hello { version: 7 },
            Message::Posted,
            Message::Send { invalidate: None },
            Message::Send {
                invalidate: Some(0),
            },
            Message::Announce(region(false)),
            Message::Announce(region(true)),
            Message::Withdraw { key: 5 },
            Message::Withdrawn { key: u32::MAX },
        ];
        for message in messages {
            let header = Header {
                posted: 0x0102_0304,
                message,
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
