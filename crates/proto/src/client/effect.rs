//! The vocabulary between the client's core and the world.

use alloc::sync::Arc;
use alloc::vec::Vec;

use wire::access::OplockLevel;
use wire::{FileId, Guid};

use super::request::{Failure, Reply, Request, RequestId};
use super::session::Session;
use super::violation::Violation;
use crate::effect::Outbound;
use crate::queue::Queue;

/// The queue of effects (actions for the I/O driver) that a call into the client's protocol core
/// appends, in order. The driver owns and reuses the queue.
pub type Effects = Queue<Effect>;

/// One action that the client's protocol core requests from the driver, the code that performs the
/// I/O: send a frame, process a login token, register memory, report a result, disconnect.
#[derive(Debug)]
pub enum Effect {
    /// Send a frame. The driver sends frames in the order of their effects. The token of a payload
    /// is the [`RequestId`] of its WRITE: the driver has the bytes.
    Send(Outbound),
    /// Process the security token (GSS-API) that the server sent in the login, and pass the result
    /// to [`Connection::authenticated`](super::Connection::authenticated), at once or later. The
    /// first token of a connection is empty: the client makes the first one. Later tokens may be
    /// empty too.
    Authenticate(Vec<u8>),
    /// The login is complete: the connection carries the session and sends requests.
    Ready(Arc<Session>),
    /// Register the memory of a request for RDMA access by the server, and pass the result to
    /// [`Connection::exposed`](super::Connection::exposed), at once or later. This occurs only if
    /// the [`Carrier`](crate::carrier::Carrier) has RDMA.
    Expose {
        /// The READ or WRITE with the memory.
        request: RequestId,
        /// Direction of the RDMA transfer.
        direction: Direction,
        /// Length of the memory in bytes, from the start of the source or destination of the
        /// request.
        length: u32,
    },
    /// End the server's RDMA access to the memory of a request. This precedes [`Effect::Answer`]
    /// and [`Effect::Lost`], once for each registration. The driver invalidates the registration
    /// before it reuses the memory, unless the server has done that.
    Withdraw {
        /// The READ or WRITE with the memory.
        request: RequestId,
        /// Whether the server has invalidated the registration already.
        is_revoked: bool,
    },
    /// The result of a request: one result for each of its steps, in order. After a failed step the
    /// further ones have failed too, mostly with the same status.
    Answer(RequestId, Vec<Result<Reply, Failure>>),
    /// The connection ended before the response to the request arrived. [`super::replay`] decides
    /// whether another channel may send the request again.
    Lost(RequestId, Request, Fate),
    /// The server breaks an oplock. The core acknowledges the break if that is required, unless the
    /// CREATE left the acknowledgment to the driver.
    OplockBreak {
        /// FileId of the open that holds the oplock.
        file_id: FileId,
        /// New oplock level, which the client must not exceed from now on.
        level: OplockLevel,
    },
    /// The server breaks a lease: it withdraws some or all caching rights. The core acknowledges
    /// the break if that is required, unless the CREATE left the acknowledgment to the driver.
    LeaseBreak(LeaseBreak),
    /// Close the transport connection, for this reason. Earlier effects [`Effect::Lost`] have
    /// returned all pending requests, and every later request is returned in the same way.
    Disconnect(Violation),
}

/// A break of a lease, as the server announces it. \[MS-SMB2\] 2.2.23.2
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseBreak {
    /// Key of the lease (LeaseKey), which the client chose in its CREATE.
    pub key: Guid,
    /// New state of the lease as a bit mask (NewLeaseState): read, handle and write caching.
    pub state: u32,
    /// Number of state changes of the lease modulo 65,536 (NewEpoch); 0 before dialect 3.0.
    pub epoch: u16,
    /// Whether the server waits for an acknowledgment.
    pub must_be_acknowledged: bool,
}

/// Direction of an RDMA transfer between the server and memory of the client: the server writes the
/// data of a READ, or reads the data of a WRITE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The server writes the data of a READ to the memory.
    Read,
    /// The server reads the data of a WRITE from the memory.
    Write,
}

/// Whether the client had already sent an unanswered request when its connection ended. If so, the
/// server may have executed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The client did not send the request.
    Unsent,
    /// The client sent the request, so the server may have executed it.
    Sent,
}

/// The memory into which the I/O driver receives a frame: one buffer for the whole frame, or the
/// message into a buffer and the data of a READ directly into the destination of that READ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// A buffer for the whole frame, which the driver passes to
    /// [`Connection::receive`](super::Connection::receive).
    Frame,
    /// A buffer for the message, and the destination of a READ for the data: the frame is an
    /// unencrypted response to that READ. The first `head` bytes of the frame are the message. The
    /// rest, `len` bytes, goes to the start of the destination of `request`. The driver passes both
    /// to [`Connection::receive_split`](super::Connection::receive_split).
    Split {
        /// Length of the message before the data in bytes.
        head: usize,
        /// The READ with the destination.
        request: RequestId,
        /// Length of the data in bytes; at most the length of the READ. The destination must stay
        /// valid until the data have arrived, even if the request ends before.
        len: u32,
    },
}

/// The result of processing one security token of the server in a login: a token to send back, the
/// completion of the login, or a failure. The I/O driver reports it.
#[derive(Debug)]
pub enum Leg {
    /// The login continues: the security token to send to the server.
    Token(Vec<u8>),
    /// The login is complete on the client's side. The value has a last token to send, if the
    /// mechanism has one.
    Done {
        /// The whole session key of the mechanism; empty for an anonymous login. Its first 16 bytes
        /// are Session.SessionKey.
        session_key: Vec<u8>,
    },
    /// The mechanism does not accept the token of the server. The connection ends.
    Failed,
}
