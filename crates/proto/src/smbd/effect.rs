//! The requests of the core to its driver.

use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use wire::smbd::NegotiateResponse;
use wire::{DecodeError, Status};

use super::config::Negotiated;
use crate::queue::Queue;

/// A message that the driver holds until [`Effect::MessageSent`]. The driver chooses the numbers.
/// No two messages in flight have the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageToken(pub u64);

/// Identifies a SEND. Numbers count up from 0 without a gap, in the order of the posts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SendId(pub u64);

/// The requested actions, in order. The driver owns and reuses the queue.
pub type Effects = Queue<Effect>;

/// One requested action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Post this number of additional receives, each of the configured `max_receive_size`, and call
    /// `posted`: at once, or when memory is available.
    PostReceives(u32),
    /// Post a SEND.
    Send(Outgoing),
    /// Store a range of the bytes of the `received` call that caused this effect.
    Fragment {
        /// The range in the received bytes.
        range: Range<usize>,
        /// Offset in the reassembled message; 0 in its first fragment.
        offset: u32,
        /// Length of the whole message in bytes, at most the configured `max_fragmented_size`. The
        /// peer states it; the data itself may take long to arrive.
        total: u32,
    },
    /// The preceding fragment completed the message.
    Message {
        /// Length of the message in bytes.
        length: u32,
    },
    /// All SENDs of the message are completed: its memory is free.
    MessageSent(MessageToken),
    /// From now on the connection accepts messages.
    Ready(Negotiated),
    /// End the connection. No effect follows. The driver may free everything that it holds for the
    /// connection when the queue pair has ended.
    Disconnect(Violation),
}

/// A SEND: a header, and optionally a piece of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// Number of the SEND.
    pub id: SendId,
    /// The first bytes, including padding.
    pub header: Header,
    /// Part of a message, sent directly after the header; `None` if the SEND has no data.
    pub piece: Option<Piece>,
    /// Key of the peer that this SEND invalidates: a SEND with invalidation if the provider
    /// supports it, an ordinary one otherwise. \[MS-SMBD\] 3.1.5.1
    pub invalidate: Option<u32>,
}

impl Outgoing {
    /// Length of the whole SEND in bytes.
    pub fn len(&self) -> usize {
        let piece = self.piece.as_ref().map_or(0, |piece| piece.range.len());
        self.header.as_slice().len() + piece
    }

    /// Always false, because every SEND has a header.
    pub fn is_empty(&self) -> bool {
        false
    }
}

/// A part of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The message.
    pub token: MessageToken,
    /// Range of the piece within the bytes of the message.
    pub range: Range<u32>,
}

/// The first bytes of a SEND. It is a value, so a SEND needs no allocation.
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

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl fmt::Debug for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02x?}", self.as_slice())
    }
}

/// Why the connection does not accept a message. The connection continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The negotiation is not finished.
    NotReady,
    /// The connection has ended.
    Over,
    /// The message has no bytes.
    Empty,
    /// The message is longer than the peer accepts.
    TooLong {
        /// Length of the message in bytes.
        length: u32,
        /// Limit of the peer in bytes.
        limit: u32,
    },
    /// The queue has its maximum number of messages.
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

/// Why a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// A malformed message.
    Malformed(DecodeError),
    /// The client supports none of the versions of this server. The server has answered so.
    /// \[MS-SMBD\] 3.1.5.6
    Version {
        /// The lowest version of the client.
        min: u16,
        /// The highest version of the client.
        max: u16,
    },
    /// The server refuses the connection. \[MS-SMBD\] 3.1.5.7
    Refused(Status),
    /// A field of the negotiation, or CreditsRequested of a data transfer, has an invalid value.
    /// \[MS-SMBD\] 3.1.5.6, 3.1.5.7, 3.1.5.8
    Field {
        /// Name of the field.
        name: &'static str,
        /// Value of the field.
        value: u32,
    },
    /// The peer sent without a credit.
    NoCredit,
    /// The peer granted more credits than a field can count.
    TooManyCredits(u32),
    /// A SEND is longer than the negotiated size.
    SendTooLong {
        /// Length of the SEND in bytes.
        length: usize,
        /// Negotiated size in bytes.
        limit: u32,
    },
    /// A message is longer than the size that this side has announced. \[MS-SMBD\] 3.1.5.8
    MessageTooLong {
        /// Length in bytes according to the fragment.
        length: u64,
        /// Limit in bytes.
        limit: u32,
    },
    /// A fragment does not continue the previous one.
    Remaining {
        /// Expected number of remaining bytes.
        expected: u32,
        /// Number of remaining bytes according to the fragment, including its own.
        found: u64,
    },
    /// The negotiation exceeded its time limit.
    NegotiateTimeout,
    /// The peer did not answer the keep-alive.
    KeepAliveTimeout,
    /// The peer granted no credits for too long.
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
