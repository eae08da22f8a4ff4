//! The vocabulary between the core and its driver. Read this first.
//!
//! A driver (the server's worker, the simulator, a fuzzer, a unit test) passes received frames
//! into a connection and takes requests for work out of [`Effects`]. The driver reports the
//! result of each operation with `complete`, under the [`OpId`] that the effect carried: once for
//! each operation, whether the driver finished it at once or later.
//!
//! `server::Server` requests operations too, for objects of no connection; see its `timeout`.
//!
//! [`crate::account`] holds the look-ups of accounts, [`crate::audit`] the events of the audit log,
//! [`crate::file`] the file operations,
//! [`crate::login`] the logins, [`crate::notice`] the messages between connections,
//! [`crate::report`] the reports, [`crate::store`] the store, [`crate::violation`] the reasons to
//! end a connection.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;
use core::time::Duration;

use wire::smbd::BufferDescriptorV1;
use wire::{Command, Status};

use crate::account::{AccountQuery, KnownAccount};
use crate::audit;
use crate::encryption::{FrameEncryption, Sign};
use crate::file::{self, FileOp, LocalOpen, ShareId};
use crate::id::{ConnectionId, OpId};
use crate::login::{Authenticate, Authenticated, ConversationId};
use crate::notice::Notice;
use crate::queue::Queue;
use crate::report::Report;
use crate::store::{self, StoreOp};
use crate::violation::Violation;

/// A number that stands for bytes that the I/O driver stores, because the protocol core handles no
/// bulk data: the data of a READ response or of a WRITE request. The driver chooses the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PayloadToken(pub u64);

/// A received frame that the I/O driver passes to the protocol core, with a buffer for the core's
/// use. The core decrypts the frame in place.
#[derive(Debug)]
pub struct Inbound<'a> {
    /// The frame without its length prefix: from the first byte of the SMB2, SMB1 or transform
    /// header to its end.
    pub bytes: &'a mut [u8],
    /// A buffer that the protocol core uses when the message is longer than the frame, as after
    /// decompression. The core overwrites the content. The I/O driver may pass the same buffer in
    /// each call.
    pub scratch: &'a mut Vec<u8>,
}

/// The queue of effects (actions for the I/O driver) that a call into the server's protocol core
/// appends, in order. The driver owns and reuses the queue.
pub type Effects = Queue<Effect>;

/// One action that the server's protocol core requests from the driver, the code that performs the
/// I/O: send a frame, read or write a file, process a login token. The driver performs the effects
/// of a call in order.
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
    /// Translate SIDs or names of accounts. The driver completes it with [`Outcome::Accounts`].
    LookUpAccounts(OpId, AccountQuery),
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
    /// Log this event for the administrator. The driver does not complete this effect.
    Report(Box<Report>),
    /// Write this event to the audit log. The driver does not complete this effect.
    Audit(Box<audit::Event>),
    /// Close the transport connection, for this reason. Frames of earlier effects still leave.
    Disconnect(Violation),
}

/// A frame that the I/O driver sends: one SMB2 message or a compound of several, optionally
/// encrypted as a whole.
#[derive(Debug)]
pub struct Outbound {
    /// The messages in the order of the frame; at least one.
    pub messages: Vec<OutMessage>,
    /// The key and nonce with which the I/O driver encrypts the frame; `None` if it sends the frame
    /// unencrypted. Messages of an encrypted frame are not signed.
    pub encryption: Option<FrameEncryption>,
    /// The key of the client's registered memory that the last SEND of the frame invalidates
    /// (remote invalidation); `None` for ordinary SENDs. Only with SMB Direct. \[MS-SMBD\] 3.1.4.2
    pub invalidate: Option<u32>,
}

/// An SMB2 message to send: its header and body (the head), then the data that the I/O driver
/// stores (the payload), then zero bytes.
#[derive(Debug)]
pub struct OutMessage {
    /// The encoded SMB2 header and the body up to the payload (the data of the message).
    pub head: Vec<u8>,
    /// The data after the head, which the I/O driver stores; `None` if the message has no such
    /// data.
    pub payload: Option<Payload>,
    /// Number of zero bytes after the payload, 0 to 7: in a compound, the next message starts at a
    /// multiple of 8.
    pub padding: u8,
    /// The key with which the I/O driver signs the message; `None` if the message is not signed.
    /// The signature covers head, payload and padding.
    pub sign: Option<Sign>,
    /// The request that the message answers, for the statistics of the I/O driver. `None` if the
    /// message is not the final response of a server.
    pub answers: Option<AnsweredRequest>,
}

/// A request that the server has processed. Its final response is in a message to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnsweredRequest {
    /// Command of the request, as the client sent it. It can be unknown.
    pub command: Command,
    /// Status of the response.
    pub status: Status,
    /// The share on which the request acted; `None` for requests without a share, and for requests
    /// that failed before the server found it.
    pub share: Option<ShareId>,
    /// Bytes of a file that a READ returned or a WRITE took; 0 for other commands, and for pipes.
    pub bytes: u32,
    /// Time from the start of the request to its result, on the clock of the I/O driver: its
    /// operations and its waits, without those of the other members of a compound. Zero if the core
    /// answered the request in the call that started it.
    pub duration: Duration,
}

/// Bytes that the I/O driver stores and sends in a message, such as the data of a READ. The
/// protocol core knows only their number and length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payload {
    /// The number by which the I/O driver finds the bytes.
    pub token: PayloadToken,
    /// Length of the data in bytes; the I/O driver must supply exactly this length.
    pub len: u32,
}

/// Whether the bytes of a READ may change between the read and the send. If they are signed or
/// encrypted, they must not. The I/O driver chooses the memory for them accordingly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The server neither signs nor encrypts the bytes; they may change until they are sent.
    Opaque,
    /// The server signs or encrypts the bytes; they must not change after that.
    InMemory,
}

/// The destination of the bytes of a READ: the response message, or memory of the client by RDMA.
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

/// A plan (a description without data) of a read from an open file, for the response to a READ
/// request. The protocol core hands it to the I/O driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadPlan {
    /// Number of the operation, which the I/O driver passes to `Connection::complete` with the
    /// outcome.
    pub op: OpId,
    /// The open file from which the I/O driver reads.
    pub file: LocalOpen,
    /// Offset of the first byte to read, in bytes from the start of the file.
    pub offset: u64,
    /// Maximum number of bytes to read.
    pub length: u32,
    /// Whether the bytes may change between the read and the send. The I/O driver chooses the
    /// memory for them accordingly.
    pub access: Access,
    /// The destination of the bytes: the response message, or memory of the client by RDMA.
    pub delivery: Delivery,
}

/// Where the I/O driver of a server finds the bytes of a WRITE: in the received frame, in a copy,
/// or in the memory of the client.
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
    /// Returns the length of the data to write in bytes.
    pub fn len(&self) -> usize {
        match self {
            Self::Inbound(range) => range.len(),
            Self::Owned(bytes) => bytes.len(),
            Self::Remote(segments) => (segments.iter())
                .map(|segment| segment.length as usize)
                .sum(),
        }
    }

    /// Returns whether the length of the data to write is 0.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A plan (a description of an operation) to write to an open file, for a WRITE request. The
/// protocol core hands it to the I/O driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WritePlan {
    /// Number of the operation, which the I/O driver passes to `Connection::complete` with the
    /// outcome.
    pub op: OpId,
    /// The open file to which the I/O driver writes.
    pub file: LocalOpen,
    /// Offset of the first byte to write, in bytes from the start of the file; `None` appends at
    /// the end of the file.
    pub offset: Option<u64>,
    /// Location of the data to write: the received frame, a copy, or memory of the client.
    pub data: WriteData,
    /// Whether the write is complete only when the bytes are on stable storage (write-through).
    pub through: bool,
}

/// The outcome of an operation that an effect requested: its result, or the status with which it
/// failed. The I/O driver passes it to `Connection::complete`.
///
/// # Panics
///
/// The `expect_` functions panic if the outcome does not belong to the operation that the protocol
/// core requested. That is a bug of the driver.
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
    /// Completes [`Effect::LookUpAccounts`]: an account for each SID or name, in the same order;
    /// `None` for those without one.
    Accounts(Vec<Option<KnownAccount>>),
    /// Completes [`Effect::Authenticate`]: the result of the security token.
    Authenticated(Authenticated),
}

impl Outcome {
    /// Returns the result of an operation of a file system, or the status with which it failed.
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

    /// Returns the result of an operation of the store (the table of records that outlive a crash
    /// of the server), or the status with which the operation failed.
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

    /// Returns the result of processing one security token of a login, or the status with which the
    /// processing failed.
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

    /// Returns the accounts that the driver found, or the status with which the look-up failed.
    ///
    /// # Panics
    /// The outcome belongs to an operation of another kind.
    pub fn expect_accounts(self) -> Result<Vec<Option<KnownAccount>>, Status> {
        match self {
            Self::Accounts(found) => Ok(found),
            Self::Failed(status) => Err(status),
            other => panic!("a look-up expects Accounts, the driver answered {other:?}"),
        }
    }

    /// Returns `Ok` if the event that a request waited for has happened; otherwise the status with
    /// which the wait ended, such as CANCELLED.
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
