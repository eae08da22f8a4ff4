//! Frames in a stream of bytes.

use std::fmt;

use crate::endpoint::Transport;
use crate::smbdirect::{KEY_LEN, PREFIX_INVALIDATES};
use crate::{nbt, tcp};

/// Length in bytes of the length prefix before each SMB2 message, the same for TCP, NetBIOS and
/// QUIC. \[MS-SMB2\] 2.1
pub const PREFIX_LEN: usize = 4;

/// Result of [`Framing::next`]: the kind of the next frame in the received bytes, or the need for
/// more bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// The bytes are not enough: the parser needs this number of bytes in total, counted from the
    /// start of the given bytes.
    Needs(usize),
    /// An SMB2 message of `len` bytes follows the prefix. It may be incomplete.
    Message {
        /// Length of the message in bytes, without the prefix.
        len: usize,
    },
    /// A control message of the transport, such as a NetBIOS keep-alive. The caller skips
    /// `consumed` bytes and sends `answer`.
    Control {
        /// Length of the control message in bytes, including its prefix.
        consumed: usize,
        /// Bytes to send to the peer as they are. Empty if the control message needs no answer.
        answer: Vec<u8>,
    },
    /// A control message of the transport that ends the connection. The caller sends `answer` and
    /// closes the connection.
    Refuse {
        /// Bytes to send to the peer as they are. Empty if the control message needs no answer.
        answer: Vec<u8>,
        /// The reason why the connection ends, for the log.
        reason: FrameError,
    },
}

/// Reason why received bytes are not valid frames. The connection then ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrameError {
    /// The first byte of a prefix is not a packet type of the transport: that byte.
    UnknownType(u8),
    /// The message is longer than the current limit.
    TooLong {
        /// Length of the message in its prefix, in bytes.
        len: usize,
        /// The limit of the caller for this message, in bytes.
        limit: usize,
    },
    /// The peer sends an SMB2 message before a NetBIOS session request.
    NoSession,
    /// The NetBIOS session request is malformed: description of the fault.
    BadSessionRequest(&'static str),
    /// The NetBIOS session request is for another service than a file server: the requested NetBIOS
    /// name.
    NotListening(String),
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownType(byte) => write!(f, "frame of unknown type {byte:#04x}"),
            Self::TooLong { len, limit } => {
                write!(f, "frame of {len} bytes: at most {limit} are allowed now")
            }
            Self::NoSession => f.write_str("message before the NetBIOS session request"),
            Self::BadSessionRequest(what) => write!(f, "bad NetBIOS session request: {what}"),
            Self::NotListening(name) => write!(f, "NetBIOS session request to `{name}`"),
        }
    }
}

impl std::error::Error for FrameError {}

/// The division of one byte stream into SMB2 messages with length prefixes, by the rules of its
/// transport. It parses received frames and makes the prefixes of sent ones.
#[derive(Clone, Debug)]
pub enum Framing {
    /// The prefix of direct TCP: a zero byte and a length of 24 bits. QUIC uses it as well.
    Tcp,
    /// SMB Direct: the prefix of direct TCP and, optionally, the key of an RDMA region that the
    /// SEND invalidates. Only this process uses the prefix: SMB Direct sends messages without it.
    SmbDirect,
    /// The framing of the NetBIOS session service: a packet type and a length of 17 bits. RFC 1002
    /// 4.3
    Nbt {
        /// Whether the server has granted the session request of the client. Messages are valid
        /// only then.
        is_established: bool,
    },
}

impl Framing {
    /// Makes the framing of a stream that a server has accepted over `transport`. With NetBIOS, the
    /// client must send a session request before the first message.
    pub fn new(transport: Transport) -> Self {
        match transport {
            Transport::Tcp | Transport::Quic => Self::Tcp,
            Transport::SmbDirect => Self::SmbDirect,
            Transport::Nbt => Self::Nbt {
                is_established: false,
            },
        }
    }

    /// Makes the framing of a stream on which the handshake of the transport (the NetBIOS session
    /// request) is complete. A client runs that handshake before the first message.
    pub fn established(transport: Transport) -> Self {
        match transport {
            Transport::Tcp | Transport::Quic => Self::Tcp,
            Transport::SmbDirect => Self::SmbDirect,
            Transport::Nbt => Self::Nbt {
                is_established: true,
            },
        }
    }

    /// Parses the prefix at the start of `bytes`, which are the received bytes from the end of the
    /// previous frame on. A message may have at most `limit` bytes without the prefix. The result
    /// says whether a message follows, a control message of the transport, or more bytes are
    /// necessary. The caller removes the handled bytes.
    ///
    /// # Errors
    /// The bytes are not a frame of this transport, or the message is longer than `limit`.
    pub fn next(&mut self, bytes: &[u8], limit: usize) -> Result<Next, FrameError> {
        let Some(prefix) = bytes.first_chunk::<PREFIX_LEN>() else {
            return Ok(Next::Needs(PREFIX_LEN));
        };
        match self {
            Self::Tcp | Self::SmbDirect => tcp::next(*prefix, limit),
            Self::Nbt { is_established } => nbt::next(*prefix, bytes, limit, is_established),
        }
    }

    /// Returns the prefix that precedes a message of `len` bytes; `None` if the message is too long
    /// for the length field of the transport.
    pub fn prefix(&self, len: usize) -> Option<[u8; PREFIX_LEN]> {
        match self {
            Self::Tcp | Self::SmbDirect => tcp::prefix(len),
            Self::Nbt { .. } => nbt::prefix(len),
        }
    }
}

impl Framing {
    /// The prefix of a message of `len` bytes. With SMB Direct, the message can invalidate the
    /// peer's memory region with this key.
    pub(crate) fn prefix_invalidating(&self, len: usize, key: Option<u32>) -> Option<Prefix> {
        let mut prefix = Prefix {
            bytes: [0; PREFIX_LEN + KEY_LEN],
            len: PREFIX_LEN,
        };
        let (head, tail) = prefix.bytes.split_at_mut(PREFIX_LEN);
        head.copy_from_slice(&self.prefix(len)?);
        if let (Self::SmbDirect, Some(key)) = (self, key) {
            head[0] |= PREFIX_INVALIDATES;
            tail.copy_from_slice(&key.to_le_bytes());
            prefix.len += KEY_LEN;
        }
        Some(prefix)
    }
}

/// The encoded prefix of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prefix {
    bytes: [u8; PREFIX_LEN + KEY_LEN],
    len: usize,
}

impl Prefix {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Checks the length of a message.
pub(crate) fn message(len: usize, limit: usize) -> Result<Next, FrameError> {
    if len > limit {
        return Err(FrameError::TooLong { len, limit });
    }
    Ok(Next::Message { len })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_smb_direct_has_keys() {
        let prefix = |framing: Framing, key| {
            let prefix = framing.prefix_invalidating(0x0A_0B0C, key);
            prefix.expect("short enough").bytes().to_vec()
        };
        let plain = [0, 0x0A, 0x0B, 0x0C];
        assert_eq!(prefix(Framing::Tcp, Some(7)), plain);
        assert_eq!(prefix(Framing::SmbDirect, None), plain);
        let with_key = [1, 0x0A, 0x0B, 0x0C, 0x44, 0x33, 0x22, 0x11];
        assert_eq!(prefix(Framing::SmbDirect, Some(0x1122_3344)), with_key);
        let too_long = Framing::SmbDirect.prefix_invalidating(1 << 24, Some(7));
        assert_eq!(too_long, None);
    }
}
