//! The requests of the core to its driver.

use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use wire::smbd::NegotiateResponse;
use wire::{DecodeError, Status};

use super::config::Negotiated;
use crate::queue::Queue;

/// A number that stands for an SMB2 message that the I/O driver holds until
/// [`Effect::MessageSent`]. The driver chooses it. No two messages in flight have the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageToken(pub u64);

/// Number of an RDMA SEND of this end of the connection. Numbers count up from 0 without a gap, in
/// the order of the posts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SendId(pub u64);

/// The queue of effects (actions for the I/O driver) that a call into the core of SMB Direct
/// appends, in order. The driver owns and reuses the queue.
pub type Effects = Queue<Effect>;

/// One action that the core of SMB Direct requests from the driver, the code that uses the RDMA
/// device: post receives or a SEND, store or process a received message, disconnect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Post this number of additional receives, each of the configured `max_receive_size`, and call
    /// [`Connection::posted`](super::Connection::posted) for them: at once, or when memory is
    /// available.
    PostReceives(u32),
    /// Post this SEND on the queue pair, and call [`Connection::sent`](super::Connection::sent)
    /// after its completion.
    Send(Outgoing),
    /// Store a part of a message of the peer: a range of the bytes that were passed to the call of
    /// [`Connection::received`](super::Connection::received) that caused this effect.
    Fragment {
        /// Range of the part in these bytes.
        range: Range<usize>,
        /// Offset of the part in the whole message in bytes; 0 for the first part.
        offset: u32,
        /// Length of the whole message in bytes, at most the configured `max_fragmented_size`. The
        /// peer states it; the data itself may take long to arrive.
        total: u32,
    },
    /// The stored parts are a complete message of the peer. The driver processes it.
    Message {
        /// Length of the message in bytes.
        length: u32,
    },
    /// All SENDs of this message are completed, so the driver may free the memory of the message.
    MessageSent(MessageToken),
    /// The negotiation is complete with these sizes: from now on the connection accepts messages.
    Ready(Negotiated),
    /// End the queue pair, for this reason. No effect follows. The driver may free everything that
    /// it holds for the connection when the queue pair has ended.
    Disconnect(Violation),
}

/// An RDMA SEND that the protocol core requests from the I/O driver: a header, and optionally a
/// part of an SMB2 message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// Number of the SEND, by which the I/O driver reports its completion to
    /// [`Connection::sent`](super::Connection::sent).
    pub id: SendId,
    /// The first bytes of the SEND: the encoded header of SMB Direct, with the padding before the
    /// data.
    pub header: Header,
    /// Part of an SMB2 message that follows the header; `None` if the SEND carries only the header.
    pub piece: Option<Piece>,
    /// Key of a memory region of the peer that this SEND invalidates; `None` for an ordinary SEND.
    /// The I/O driver posts a SEND with invalidation if the RDMA device supports it, otherwise an
    /// ordinary one. \[MS-SMBD\] 3.1.5.1
    pub invalidate: Option<u32>,
}

impl Outgoing {
    /// Returns the length of the SEND in bytes: header and part of a message.
    pub fn len(&self) -> usize {
        let piece = self.piece.as_ref().map_or(0, |piece| piece.range.len());
        self.header.as_slice().len() + piece
    }

    /// Returns whether the SEND has no bytes. The result is always false, because every SEND has a
    /// header.
    pub fn is_empty(&self) -> bool {
        false
    }
}

/// The part of an SMB2 message that one SMB Direct data transfer message (one RDMA SEND) carries.
/// \[MS-SMBD\] 2.2.3
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The number that the I/O driver gave to the message.
    pub token: MessageToken,
    /// Range of the part in bytes from the start of the message.
    pub range: Range<u32>,
}

/// The first bytes of an RDMA SEND: the encoded header of SMB Direct, at most 32 bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Header {
    bytes: [u8; NegotiateResponse::LEN],
    len: u8,
}

impl Header {
    /// Stores the bytes that `encode` appends.
    pub(super) fn new(scratch: &mut Vec<u8>, encode: impl FnOnce(&mut Vec<u8>)) -> Self {
        scratch.clear();
        encode(scratch);
        let mut bytes = [0; NegotiateResponse::LEN];
        bytes[..scratch.len()].copy_from_slice(scratch);
        let len = scratch.len() as u8;
        Self { bytes, len }
    }

    /// Returns the bytes of the header, including the padding before the data.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl fmt::Debug for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02x?}", self.as_slice())
    }
}

/// Reason why [`Connection::send`](super::Connection::send) does not accept a message, such as a
/// full queue. The connection continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The negotiation is not complete.
    NotReady,
    /// The connection has ended, or the queue pair is lost.
    Over,
    /// The message has no bytes.
    Empty,
    /// The message is longer than the peer accepts.
    TooLong {
        /// Length of the message in bytes.
        length: u32,
        /// Maximum length of a message that the peer accepts, in bytes.
        limit: u32,
    },
    /// The queue has its maximum number of messages
    /// ([`Config::queue_depth`](super::Config::queue_depth)).
    QueueFull,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotReady => f.write_str("the connection is not negotiated"),
            Self::Over => f.write_str("the connection is over"),
            Self::Empty => f.write_str("the message is empty"),
            Self::TooLong { length, limit } => {
                write!(
                    f,
                    "a message of {length} bytes exceeds the limit of the peer, {limit}"
                )
            }
            Self::QueueFull => f.write_str("too many messages are queued"),
        }
    }
}

impl core::error::Error for Refusal {}

/// Reason why an SMB Direct connection ends, such as a malformed message of the peer or a passed
/// time limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// The peer sent a malformed message.
    Malformed(DecodeError),
    /// The client supports none of the protocol versions of this server. The server has sent a
    /// response with that status. \[MS-SMBD\] 3.1.5.6
    Version {
        /// Lowest protocol version that the client supports.
        min: u16,
        /// Highest protocol version that the client supports.
        max: u16,
    },
    /// The server refuses the negotiation with this status. \[MS-SMBD\] 3.1.5.7
    Refused(Status),
    /// A field of the negotiation, or CreditsRequested of a data transfer, has an invalid value.
    /// \[MS-SMBD\] 3.1.5.6, 3.1.5.7, 3.1.5.8
    Field {
        /// Name of the field in the specification.
        name: &'static str,
        /// Value that the peer sent.
        value: u32,
    },
    /// The peer sent a SEND without a credit for it.
    NoCredit,
    /// The peer granted more credits than a field of the protocol can hold: the number of credits
    /// that this end would have.
    TooManyCredits(u32),
    /// A SEND of the peer is longer than the negotiated size.
    SendTooLong {
        /// Length of the SEND in bytes.
        length: usize,
        /// Negotiated maximum length of a SEND in bytes.
        limit: u32,
    },
    /// A message of the peer is longer than the maximum that this end has announced. \[MS-SMBD\]
    /// 3.1.5.8
    MessageTooLong {
        /// Length of the message in bytes according to its part.
        length: u64,
        /// Announced maximum length of a message in bytes.
        limit: u32,
    },
    /// A part of a message does not continue the previous one: its number of remaining bytes is
    /// wrong.
    Remaining {
        /// Expected number of remaining bytes, from this part to the end of the message.
        expected: u32,
        /// Number of remaining bytes that the peer sent, including those of this part.
        found: u64,
    },
    /// The negotiation exceeded its time limit.
    NegotiateTimeout,
    /// The peer did not answer the keep-alive message within the time limit.
    KeepAliveTimeout,
    /// The peer granted no credit within the time limit, while a message waited for one.
    CreditTimeout,
}

impl From<DecodeError> for Violation {
    fn from(error: DecodeError) -> Self {
        Self::Malformed(error)
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(error) => write!(f, "malformed SMB Direct message: {error}"),
            Self::Version { min, max } => {
                write!(
                    f,
                    "SMB Direct versions {min:#06x} to {max:#06x} are not supported"
                )
            }
            Self::Refused(status) => write!(f, "the server refused SMB Direct: {status:?}"),
            Self::Field { name, value } => write!(f, "SMB Direct {name} is {value}"),
            Self::NoCredit => f.write_str("the peer sent without an SMB Direct credit"),
            Self::TooManyCredits(count) => write!(f, "the peer granted {count} credits"),
            Self::SendTooLong { length, limit } => {
                write!(
                    f,
                    "an RDMA SEND of {length} bytes exceeds the negotiated {limit}"
                )
            }
            Self::MessageTooLong { length, limit } => {
                write!(
                    f,
                    "a fragmented message of {length} bytes exceeds the limit of {limit}"
                )
            }
            Self::Remaining { expected, found } => {
                write!(
                    f,
                    "a fragment states {found} remaining bytes instead of {expected}"
                )
            }
            Self::NegotiateTimeout => f.write_str("the SMB Direct negotiation took too long"),
            Self::KeepAliveTimeout => f.write_str("the peer does not answer keep-alives"),
            Self::CreditTimeout => f.write_str("the peer grants no SMB Direct credits"),
        }
    }
}

impl core::error::Error for Violation {}
