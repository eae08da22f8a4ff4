//! What the core asks of its driver.

use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use wire::smbd::NegotiateResponse;
use wire::{DecodeError, Status};

use super::config::Negotiated;
use crate::queue::Queue;

/// A message that the driver holds until [`Effect::MessageSent`]. The driver chooses the numbers;
/// no two messages that are under way have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageToken(pub u64);

/// A SEND. They count up from 0, without a gap, in the order in which they are posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SendId(pub u64);

/// What is to be done, in order. The driver owns and reuses it.
pub type Effects = Queue<Effect>;

/// One thing to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Post so many more receives, each of the configured `max_receive_size`, and say `posted`:
    /// at once, or when there is memory for them.
    PostReceives(u32),
    /// Post a SEND.
    Send(Outgoing),
    /// Keep a range of the bytes of the `received` call that made this effect.
    Fragment {
        /// Where in the bytes that were received.
        range: Range<usize>,
        /// Where in the message that is put together; 0 in its first fragment.
        offset: u32,
        /// Bytes of the whole message, at most the configured `max_fragmented_size`. The peer
        /// says so; what it really sends may take its time.
        total: u32,
    },
    /// The fragment in front of this effect completed the message, of so many bytes.
    Message {
        /// Bytes.
        length: u32,
    },
    /// All SENDs of the message are completed: its memory is free.
    MessageSent(MessageToken),
    /// Messages can be sent from now on.
    Ready(Negotiated),
    /// End the connection. Nothing comes after this; all that the driver holds for the
    /// connection is free once the queue pair is gone.
    Disconnect(Violation),
}

/// A SEND: a header, then perhaps a piece of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// Its number.
    pub id: SendId,
    /// The bytes that come first, padding included.
    pub header: Header,
    /// The bytes that follow.
    pub piece: Option<Piece>,
    /// The key of the peer that this SEND is to invalidate: a SEND with invalidation where the
    /// provider knows such, and else an ordinary one. \[MS-SMBD\] 3.1.5.1
    pub invalidate: Option<u32>,
}

impl Outgoing {
    /// Bytes of the whole SEND.
    pub fn len(&self) -> usize {
        let piece = self.piece.as_ref().map_or(0, |piece| piece.range.len());
        self.header.as_slice().len() + piece
    }

    /// Never: there is always a header.
    pub fn is_empty(&self) -> bool {
        false
    }
}

/// A part of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Which message.
    pub token: MessageToken,
    /// Which of its bytes.
    pub range: Range<u32>,
}

/// The first bytes of a SEND, by value: there is one for each, and no allocation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Header {
    bytes: [u8; NegotiateResponse::LEN],
    len: u8,
}

impl Header {
    /// What `encode` appends.
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

/// Why a message is not sent. The connection goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The negotiation is not over.
    NotReady,
    /// The connection is.
    Over,
    /// The message has no bytes.
    Empty,
    /// The message is longer than what the peer puts together.
    TooLong {
        /// Bytes of the message.
        length: u32,
        /// Bytes that the peer takes.
        limit: u32,
    },
    /// As many messages as are allowed wait already.
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
                    "a message of {length} bytes where the peer takes {limit}"
                )
            }
            Self::QueueFull => f.write_str("too many messages wait"),
        }
    }
}

impl core::error::Error for Refusal {}

/// Why a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// Bytes that are not what they should be.
    Malformed(DecodeError),
    /// A client speaks none of our versions. It was told so. \[MS-SMBD\] 3.1.5.6
    Version {
        /// The lowest one that it speaks.
        min: u16,
        /// The highest one.
        max: u16,
    },
    /// The server does not want us. \[MS-SMBD\] 3.1.5.7
    Refused(Status),
    /// A field of the negotiation, or CreditsRequested of a data transfer, has a value that it
    /// must not have. \[MS-SMBD\] 3.1.5.6, 3.1.5.7, 3.1.5.8
    Field {
        /// Its name.
        name: &'static str,
        /// What it says.
        value: u32,
    },
    /// The peer sent without a credit.
    NoCredit,
    /// We hold more credits than a field can say.
    TooManyCredits(u32),
    /// A SEND that is longer than what was negotiated.
    SendTooLong {
        /// Bytes of it.
        length: usize,
        /// Bytes that were negotiated.
        limit: u32,
    },
    /// A message that is longer than what we said that we put together. \[MS-SMBD\] 3.1.5.8
    MessageTooLong {
        /// Bytes of it, as its fragment says.
        length: u64,
        /// Bytes that we take.
        limit: u32,
    },
    /// A fragment that does not go on where the last one ended.
    Remaining {
        /// Bytes that were left of the message.
        expected: u32,
        /// Bytes that are left as this fragment says, those in it included.
        found: u64,
    },
    /// The negotiation took too long.
    NegotiateTimeout,
    /// The peer does not answer.
    KeepAliveTimeout,
    /// The peer lets us send nothing.
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
                    "SMB Direct versions {min:#06x} to {max:#06x} are not spoken here"
                )
            }
            Self::Refused(status) => write!(f, "the server refused SMB Direct: {status:?}"),
            Self::Field { name, value } => write!(f, "SMB Direct {name} is {value}"),
            Self::NoCredit => f.write_str("the peer sent without an SMB Direct credit"),
            Self::TooManyCredits(count) => write!(f, "the peer granted {count} credits"),
            Self::SendTooLong { length, limit } => {
                write!(f, "an RDMA SEND of {length} bytes, {limit} were negotiated")
            }
            Self::MessageTooLong { length, limit } => {
                write!(
                    f,
                    "a fragmented message of {length} bytes, {limit} are taken"
                )
            }
            Self::Remaining { expected, found } => {
                write!(
                    f,
                    "a fragment says that {found} bytes are left, not {expected}"
                )
            }
            Self::NegotiateTimeout => f.write_str("the SMB Direct negotiation took too long"),
            Self::KeepAliveTimeout => f.write_str("the peer does not answer keep-alives"),
            Self::CreditTimeout => f.write_str("the peer grants no SMB Direct credits"),
        }
    }
}

impl core::error::Error for Violation {}
