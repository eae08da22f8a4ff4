//! The vocabulary between the core and its driver. Read this first.
//!
//! A driver (the server's worker, the simulator, a fuzzer, a unit test) passes received frames
//! into a connection and takes requests for work out of [`Effects`]. The driver reports the
//! result of each operation with `complete`, under the [`OpId`] that the effect carried: once for
//! each operation, whether the driver finished it at once or later.
//!
//! `server::Server` requests operations too, for objects of no connection; see its `timeout`.
//!
//! [`crate::file`] holds the file operations, [`crate::login`] the logins, [`crate::notice`] the
//! messages between connections, [`crate::store`] the store, [`crate::violation`] the reasons to
//! end a connection.

use alloc::vec::Vec;
use core::ops::Range;

use wire::Status;
use wire::smbd::BufferDescriptorV1;

use crate::encryption::{FrameEncryption, Sign};
use crate::file::{self, FileOp, LocalOpen};
use crate::id::{ConnectionId, OpId};
use crate::login::{Authenticate, Authenticated, ConversationId};
use crate::notice::Notice;
use crate::queue::Queue;
use crate::store::{self, StoreOp};
use crate::violation::Violation;

/// Identifies bytes that the driver stores and the core knows only by this number: the data of a
/// READ response or WRITE request. The driver chooses the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PayloadToken(pub u64);

/// A received frame without its length prefix. The core decrypts the bytes in place.
#[derive(Debug)]
pub struct Inbound<'a> {
    /// The frame without its length prefix: from the first byte of the SMB2, SMB1 or transform
    /// header to its end.
    pub bytes: &'a mut [u8],
    /// A buffer that the core uses when the message is longer than the frame, such as a compressed
    /// one. The core overwrites the content. The driver may pass the same buffer in each call.
    pub scratch: &'a mut Vec<u8>,
}

/// The effects of a call into the core, in order. The driver owns the queue and reuses it.
pub type Effects = Queue<Effect>;

/// A request of the server's core to its driver. The driver performs the effects of a call in
/// order.
#[derive(Debug)]
pub enum Effect {
    /// Send a frame to the client. Frames leave in the order of their effects.
    Send(Outbound),
    /// Read a range of a file into a payload or into memory of the client. The driver completes it
    /// with [`Outcome::Read`] or [`Outcome::Placed`].
    Read(ReadPlan),
    /// Write a range of a file. The driver completes it with [`Outcome::Written`].
    Write(WritePlan),
    /// Run a file operation. The driver completes it with [`Outcome::File`].
    File(OpId, FileOp),
    /// Run an operation of the store. The driver completes it with [`Outcome::Store`] once it is
    /// durable.
    Store(OpId, StoreOp),
    /// Process one security token of a login. The driver completes it with
    /// [`Outcome::Authenticated`].
    Authenticate(OpId, Authenticate),
    /// Discard the state of a login that has ended. The driver does not complete this effect.
    EndConversation(ConversationId),
    /// Cancel the operation unless it is complete. The driver completes the operation in any case:
    /// with its outcome, or with the status CANCELLED.
    Cancel(OpId),
    /// Free the bytes of a payload, because the core will not send it.
    Release(PayloadToken),
    /// Deliver a notice to another connection of this process.
    Notify(ConnectionId, Notice),
    /// Call `Server::next_timeout` again, because its result may be earlier than before. Only a
    /// connection requests this; the driver notifies the thread that drives the server.
    ArmServerTimer,
    /// Close the transport connection, for this reason. Frames of earlier effects still leave.
    Disconnect(Violation),
}

/// A frame to send: the messages of a compound in order, optionally encrypted as a whole.
#[derive(Debug)]
pub struct Outbound {
    /// The messages in the order of the frame; at least one.
    pub messages: Vec<OutMessage>,
    /// The key and nonce to encrypt the frame with; `None` if the frame is sent unencrypted.
    /// Messages of an encrypted frame are not signed.
    pub encryption: Option<FrameEncryption>,
    /// The key of registered client memory that the last SEND of the frame invalidates (remote
    /// invalidation); `None` for ordinary SENDs. Only with SMB Direct. \[MS-SMBD\] 3.1.4.2
    pub invalidate: Option<u32>,
}

/// A message to send: a head, then the payload, then zero bytes.
#[derive(Debug)]
pub struct OutMessage {
    /// The header and the body up to the payload.
    pub head: Vec<u8>,
    /// The bytes after the head, which the driver stores; `None` if the message is the head alone.
    pub payload: Option<Payload>,
    /// Number of zero bytes after the payload: the next message of a compound starts at a multiple
    /// of 8.
    pub padding: u8,
    /// The key to sign the message with; `None` if it is not signed. The signature covers head,
    /// payload and padding.
    pub sign: Option<Sign>,
}

/// Bytes that the driver stores for a message, such as the data of a READ. The core knows only
/// their length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payload {
    /// Identifies the bytes in the driver.
    pub token: PayloadToken,
    /// Number of the bytes; the driver must supply exactly this number.
    pub len: u32,
}

/// A requirement on the memory with the bytes of a READ. The driver chooses how to meet it, for
/// example with or without a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The server neither signs nor encrypts the bytes; they may change until they are sent.
    Opaque,
    /// The server signs or encrypts the bytes; they must not change after that.
    InMemory,
}

/// The destination of the bytes of a READ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// A payload, which follows the head of the response.
    Inline,
    /// This registered memory of the client, to which the driver writes by RDMA, segment by segment
    /// in this order. The driver writes all bytes that it read, and never more than the segments
    /// hold. The core requests this only where its [`Carrier`](crate::carrier::Carrier) supports
    /// RDMA, and never for an encrypted response.
    Remote(Vec<BufferDescriptorV1>),
}

/// A plan to read a range of a file for a READ response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadPlan {
    /// Identifies the operation in `Connection::complete`.
    pub op: OpId,
    /// The open file to read.
    pub file: LocalOpen,
    /// Offset in bytes from the start of the file.
    pub offset: u64,
    /// Maximum number of bytes to read.
    pub length: u32,
    /// Whether the bytes may change until they are sent. The driver chooses the memory for them
    /// accordingly.
    pub access: Access,
    /// The destination of the bytes.
    pub delivery: Delivery,
}

/// Where the driver of a server finds the bytes of a WRITE: in the received frame, in a copy, or in
/// the memory of the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteData {
    /// A range of the inbound frame of the call that produced the effect, after decryption. The
    /// driver keeps the buffer of the frame until the write is complete.
    Inbound(Range<usize>),
    /// A copy of the bytes: the request had to wait, and the driver may have reused its frame.
    Owned(Vec<u8>),
    /// This registered memory of the client, from which the driver reads by RDMA, segment by
    /// segment in this order. The driver fetches all bytes before it writes any of them. The core
    /// requests this only where its [`Carrier`](crate::carrier::Carrier) supports RDMA.
    Remote(Vec<BufferDescriptorV1>),
}

impl WriteData {
    /// Returns the length of the data in bytes.
    pub fn len(&self) -> usize {
        match self {
            Self::Inbound(range) => range.len(),
            Self::Owned(bytes) => bytes.len(),
            Self::Remote(segments) => (segments.iter())
                .map(|segment| segment.length as usize)
                .sum(),
        }
    }

    /// Returns whether the data have no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A plan to write a range of a file for a WRITE request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WritePlan {
    /// Identifies the operation in `Connection::complete`.
    pub op: OpId,
    /// The open file to write.
    pub file: LocalOpen,
    /// Offset in bytes from the start of the file; `None` appends at the end of the file.
    pub offset: Option<u64>,
    /// Location of the data that the driver writes.
    pub data: WriteData,
    /// Whether the write is complete only when the bytes are on stable storage.
    pub through: bool,
}

/// The outcome of an operation. The driver passes it to `Connection::complete`.
///
/// # Panics
///
/// The `expect_` functions panic if the outcome does not belong to the operation that the core
/// requested. That is a bug of the driver.
#[derive(Debug)]
pub enum Outcome {
    /// The operation failed with this status, which the client receives.
    Failed(Status),
    /// The event that a request waited for has happened. The core makes this outcome itself; no
    /// driver does.
    Woken,
    /// Completes [`Effect::Read`] with [`Delivery::Inline`]: the payload with the bytes. A length
    /// below the requested length means the end of the file; a length of 0 means that the offset is
    /// at or past the end.
    Read(Payload),
    /// Completes [`Effect::Read`] with [`Delivery::Remote`]: the number of bytes in the client's
    /// memory. The transport does not access that memory again.
    Placed(u32),
    /// The transport could not read or write the client's memory: a key was wrong, or the queue
    /// pair failed. The connection is lost, as after any failed RDMA operation.
    RemoteFailed,
    /// Completes [`Effect::Write`]: the number of written bytes.
    Written(u32),
    /// Completes [`Effect::File`]: the result of the file operation.
    File(file::Outcome),
    /// Completes [`Effect::Store`]: the result of the operation of the store.
    Store(store::Outcome),
    /// Completes [`Effect::Authenticate`]: the result of the security token.
    Authenticated(Authenticated),
}

impl Outcome {
    /// Returns the result of a file operation, or the status with which it failed.
    ///
    /// # Panics
    /// The outcome belongs to an operation of another kind.
    pub fn expect_file(self) -> Result<file::Outcome, Status> {
        match self {
            Self::File(outcome) => Ok(outcome),
            Self::Failed(status) => Err(status),
            other => panic!("a file operation expects File, the driver answered {other:?}"),
        }
    }

    /// Returns the result of an operation of the store, or the status with which it failed.
    ///
    /// # Panics
    /// The outcome belongs to an operation of another kind.
    pub fn expect_store(self) -> Result<store::Outcome, Status> {
        match self {
            Self::Store(outcome) => Ok(outcome),
            Self::Failed(status) => Err(status),
            other => panic!("a store operation expects Store, the driver answered {other:?}"),
        }
    }

    /// Returns the result of a security token of a login, or the status with which it failed.
    ///
    /// # Panics
    /// The outcome belongs to an operation of another kind.
    pub fn expect_authenticated(self) -> Result<Authenticated, Status> {
        match self {
            Self::Authenticated(authenticated) => Ok(authenticated),
            Self::Failed(status) => Err(status),
            other => panic!("a login expects Authenticated, the driver answered {other:?}"),
        }
    }

    /// Checks that the event that a request waited for has happened; otherwise returns the status
    /// with which the wait ended.
    ///
    /// # Panics
    /// The outcome belongs to an operation of another kind.
    pub fn expect_woken(self) -> Result<(), Status> {
        match self {
            Self::Woken => Ok(()),
            Self::Failed(status) => Err(status),
            other => panic!("a wait expects Woken, the connection received {other:?}"),
        }
    }
}

impl From<Result<file::Outcome, Status>> for Outcome {
    fn from(result: Result<file::Outcome, Status>) -> Self {
        match result {
            Ok(outcome) => Self::File(outcome),
            Err(status) => Self::Failed(status),
        }
    }
}

impl From<Result<store::Outcome, Status>> for Outcome {
    fn from(result: Result<store::Outcome, Status>) -> Self {
        match result {
            Ok(outcome) => Self::Store(outcome),
            Err(status) => Self::Failed(status),
        }
    }
}
