//! The vocabulary between the core and its driver. Read this first.
//!
//! A driver (the server's worker, the simulator, a fuzzer, a unit test) passes received frames
//! into a connection and takes requests for work out of [`Effects`]. The driver reports the
//! result of each operation with `complete`, under the [`OpId`] that the effect carried: once for
//! each operation, whether the driver finished it at once or later.
//!
//! [`crate::file`] holds the file operations, [`crate::login`] the logins, [`crate::notice`] the
//! messages between connections, [`crate::violation`] the reasons to end a connection.

use alloc::vec::Vec;
use core::ops::Range;

use wire::Status;
use wire::smbd::BufferDescriptorV1;

use crate::file::{DirectoryEntry, FileOp, LocalOpen, Metadata, Opened, VolumeInfo};
use crate::id::{ConnectionId, OpId};
use crate::login::{Authenticate, Authenticated, ConversationId};
use crate::notice::Notice;
use crate::path::SharePath;
use crate::queue::Queue;
use crate::seal::{Seal, Sign};
use crate::violation::Violation;

/// Identifies bytes that the driver holds for a response: a registered buffer, a pipe, the peer's
/// memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PayloadToken(pub u64);

/// What came in: one frame without its length prefix. The bytes are unsealed in place.
#[derive(Debug)]
pub struct Inbound<'a> {
    /// From the first byte of the SMB2, SMB1 or transform header to the end of the frame.
    pub bytes: &'a mut [u8],
}

/// What is to be done, in order. The driver owns and reuses it.
pub type Effects = Queue<Effect>;

/// One thing to be done.
#[derive(Debug)]
pub enum Effect {
    /// Send a frame. Frames go out in the order of their effects.
    Send(Outbound),
    /// Read into a payload; completed with [`Outcome::Read`].
    Read(ReadPlan),
    /// Write from the message or from memory; completed with [`Outcome::Written`].
    Write(WritePlan),
    /// Do something with a file; completed as the operation says.
    File(OpId, FileOp),
    /// Take a login one step further; completed with [`Outcome::Authenticated`].
    Authenticate(OpId, Authenticate),
    /// Forget a login that is over, whatever its state. Not completed.
    EndConversation(ConversationId),
    /// The answer to the operation is no longer wanted. It is completed all the same, with what
    /// came of it or with CANCELLED.
    Cancel(OpId),
    /// The payload will not be sent: its bytes may go.
    Release(PayloadToken),
    /// Tell another connection of this process.
    Notify(ConnectionId, Notice),
    /// End the connection. What was sent before still goes out.
    Disconnect(Violation),
}

/// A frame to be sent: the messages of a compound one after the other, perhaps sealed as a whole.
#[derive(Debug)]
pub struct Outbound {
    /// At least one.
    pub messages: Vec<OutMessage>,
    /// How to seal the frame. Then no message is signed.
    pub seal: Option<Seal>,
    /// The key of memory of the peer that its transport is to take back when the frame is there:
    /// the last SEND of the frame goes out as one with invalidation. Only with SMB Direct.
    /// \[MS-SMBD\] 3.1.4.2
    pub invalidate: Option<u32>,
}

/// A message to be sent: a head, then the payload, then zero bytes.
#[derive(Debug)]
pub struct OutMessage {
    /// The header and the body up to the payload.
    pub head: Vec<u8>,
    /// What follows the head.
    pub payload: Option<Payload>,
    /// Zero bytes behind it: the next member of a compound starts at a multiple of 8.
    pub padding: u8,
    /// How to sign the message: over head, payload and padding.
    pub sign: Option<Sign>,
}

/// Bytes that the driver holds; the core knows only how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payload {
    /// Which ones.
    pub token: PayloadToken,
    /// Bytes.
    pub len: u32,
}

/// What must be true of the bytes of a READ. The driver chooses the mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Nobody looks at the bytes on their way.
    Opaque,
    /// They will be signed or sealed, and must not change in between.
    InMemory,
}

/// Where the bytes of a READ go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// Into a payload, which follows the head of the answer.
    Inline,
    /// Into this memory of the client, piece by piece in this order: as many bytes as there are,
    /// and never more than the pieces hold. The core asks for that only where its
    /// [`Carrier`](crate::carrier::Carrier) has RDMA, and never for the data of what is sealed.
    Remote(Vec<BufferDescriptorV1>),
}

/// Read a range of a file for a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadPlan {
    /// Under which it is completed.
    pub op: OpId,
    /// The file.
    pub file: LocalOpen,
    /// Bytes from the start of the file.
    pub offset: u64,
    /// Bytes at most.
    pub length: u32,
    /// What must be true of the bytes.
    pub access: Access,
    /// Where they go.
    pub delivery: Delivery,
}

/// Where the bytes of a WRITE are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteData {
    /// In the inbound frame of the very call that made the effect, unsealed by now. The driver
    /// keeps the frame's buffer until the write is completed.
    Inbound(Range<usize>),
    /// Here: the request had to wait, and its frame may be gone.
    Owned(Vec<u8>),
    /// In this memory of the client, piece by piece in this order: all of it is to be there before
    /// any of it is written. The core asks for that only where its
    /// [`Carrier`](crate::carrier::Carrier) has RDMA.
    Remote(Vec<BufferDescriptorV1>),
}

impl WriteData {
    /// Bytes.
    pub fn len(&self) -> usize {
        match self {
            Self::Inbound(range) => range.len(),
            Self::Owned(bytes) => bytes.len(),
            Self::Remote(pieces) => pieces.iter().map(|piece| piece.length as usize).sum(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Write a range of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WritePlan {
    /// Under which it is completed.
    pub op: OpId,
    /// The file.
    pub file: LocalOpen,
    /// Bytes from the start of the file; `None` appends at its end.
    pub offset: Option<u64>,
    /// The bytes.
    pub data: WriteData,
    /// Whether it is done only when it is on stable storage.
    pub through: bool,
}

/// What came of an operation.
#[derive(Debug)]
pub enum Outcome {
    /// It failed.
    Failed(Status),
    /// It is done, and there is nothing to say.
    Done,
    /// Of [`Effect::Read`]. Fewer bytes than asked for come at the end of the file only; no bytes
    /// at all, with a length of 0, are at or past it.
    Read(Payload),
    /// Of [`Effect::Read`] with [`Delivery::Remote`]: so many bytes lie in the client's memory,
    /// and the transport will not touch it again.
    Placed(u32),
    /// The client's memory could not be read or written: its keys were wrong, or the transport
    /// failed. Of a connection that is lost with that, as every one is that RDMA failed on.
    RemoteFailed,
    /// Of [`Effect::Write`]: bytes written.
    Written(u32),
    /// Of [`FileOp::Open`].
    Opened(Opened),
    /// Of [`FileOp::Stat`] and its like.
    Metadata(Metadata),
    /// Of [`FileOp::Rename`]: the name as the file system spells it.
    Renamed(SharePath),
    /// Of [`FileOp::LookUp`]; `None` where there is no such file.
    Found(Option<Metadata>),
    /// Of [`FileOp::ReadDirectory`]. No entries: the end.
    Directory(Vec<DirectoryEntry>),
    /// Of [`FileOp::CopyRange`].
    Copied {
        /// Bytes that were copied, from the start of the range.
        count: u32,
        /// Why no more than these; SUCCESS if these are all.
        status: Status,
    },
    /// Of [`FileOp::ZeroRange`]: up to which byte the range is zero by now. Not to its end where
    /// much has to be written: then the rest is asked for next.
    Zeroed(u64),
    /// Of [`FileOp::AllocatedRanges`]: as many as were asked for, or all.
    Ranges(Vec<Range<u64>>),
    /// Of [`FileOp::Volume`].
    Volume(VolumeInfo),
    /// Of [`Effect::Authenticate`].
    Authenticated(Authenticated),
}
