//! A stream of bytes becomes frames.

use std::fmt;

use crate::endpoint::Transport;
use crate::smbdirect::{KEY_LEN, PREFIX_INVALIDATES};
use crate::{nbt, tcp};

/// Bytes in front of a frame, for every transport that is a stream.
pub const PREFIX_LEN: usize = 4;

/// What the next bytes of a stream are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Not to be told before so many bytes are there, counted from where the look began.
    Needs(usize),
    /// An SMB message of `len` bytes behind the prefix. It may not be there in whole yet.
    Message {
        /// Bytes.
        len: usize,
    },
    /// The transport's own: pass over `consumed` bytes and send the answer, if there is one.
    Control {
        /// Bytes to pass over.
        consumed: usize,
        /// Bytes to send back as they are.
        answer: Vec<u8>,
    },
    /// The transport's own: send the answer and close.
    Refuse {
        /// Bytes to send back as they are.
        answer: Vec<u8>,
        /// Why, for the log.
        reason: FrameError,
    },
}

/// Why a stream is not one of frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrameError {
    /// The first byte of a prefix is none that the transport knows.
    UnknownType(u8),
    /// Longer than what is allowed now. Bytes.
    TooLong {
        /// As the prefix says.
        len: usize,
        /// As the server says.
        limit: usize,
    },
    /// An SMB message before the NetBIOS session was asked for.
    NoSession,
    /// A NetBIOS session request that cannot be read.
    BadSessionRequest(&'static str),
    /// A NetBIOS session request to a name that is not here.
    NotListening(String),
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownType(byte) => write!(f, "frame of unknown type {byte:#04x}"),
            Self::TooLong { len, limit } => {
                write!(f, "frame of {len} bytes, {limit} are allowed now")
            }
            Self::NoSession => f.write_str("message before the NetBIOS session request"),
            Self::BadSessionRequest(what) => write!(f, "bad NetBIOS session request: {what}"),
            Self::NotListening(name) => write!(f, "NetBIOS session request to `{name}`"),
        }
    }
}

impl std::error::Error for FrameError {}

/// How one stream is cut into frames.
#[derive(Clone, Debug)]
pub enum Framing {
    /// Direct TCP, and every transport whose stream looks like it.
    Tcp,
    /// SMB Direct: that of direct TCP, which stays in this process, with a key to invalidate.
    SmbDirect,
    /// The NetBIOS session service.
    Nbt {
        /// Whether the session was asked for and granted.
        is_established: bool,
    },
}

impl Framing {
    /// For a stream that was just accepted.
    pub fn new(transport: Transport) -> Self {
        match transport {
            Transport::Tcp | Transport::Quic => Self::Tcp,
            Transport::SmbDirect => Self::SmbDirect,
            Transport::Nbt => Self::Nbt {
                is_established: false,
            },
        }
    }

    /// For a stream on which the transport's own exchange is over: a client has done its part of
    /// it before the first message.
    pub fn established(transport: Transport) -> Self {
        match transport {
            Transport::Tcp | Transport::Quic => Self::Tcp,
            Transport::SmbDirect => Self::SmbDirect,
            Transport::Nbt => Self::Nbt {
                is_established: true,
            },
        }
    }

    /// What the bytes at the start of `bytes` are. `limit`: bytes that a message may have now.
    pub fn next(&mut self, bytes: &[u8], limit: usize) -> Result<Next, FrameError> {
        let Some(prefix) = bytes.first_chunk::<PREFIX_LEN>() else {
            return Ok(Next::Needs(PREFIX_LEN));
        };
        match self {
            Self::Tcp | Self::SmbDirect => tcp::next(*prefix, limit),
            Self::Nbt { is_established } => nbt::next(*prefix, bytes, limit, is_established),
        }
    }

    /// The prefix of a message of `len` bytes; `None` if the transport cannot carry it.
    pub fn prefix(&self, len: usize) -> Option<[u8; PREFIX_LEN]> {
        match self {
            Self::Tcp | Self::SmbDirect => tcp::prefix(len),
            Self::Nbt { .. } => nbt::prefix(len),
        }
    }
}

impl Framing {
    /// The prefix of a message of `len` bytes that is to take a region of the peer out of our
    /// reach, as the transport knows such: SMB Direct does.
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

/// What stands in front of a message.
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

/// Refuses a message that is too long.
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
    fn only_smb_direct_hears_of_keys() {
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
