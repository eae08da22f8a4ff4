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

/// Queue of effects, in order. The driver owns and reuses it.
pub type Effects = Queue<Effect>;

/// One action for the driver.
#[derive(Debug)]
pub enum Effect {
    /// Send a frame. The driver sends frames in the order of their effects. The token of a payload
    /// is the number of its request.
    Send(Outbound),
    /// Process the server's token of the login, and pass the result to
    /// [`Connection::authenticated`](super::Connection::authenticated), at once or later. The first
    /// token of a connection is empty: the client sends the first one. Later ones may be empty too.
    Authenticate(Vec<u8>),
    /// The connection carries the session and accepts requests.
    Ready(Arc<Session>),
    /// Register the memory of a request for access by the server, and pass the result to
    /// [`Connection::exposed`](super::Connection::exposed), at once or later. Only if the
    /// [`Carrier`](crate::carrier::Carrier) has RDMA.
    Expose {
        /// The request.
        request: RequestId,
        /// Direction of the transfer.
        direction: Direction,
        /// Length in bytes, from the start of the source or destination.
        length: u32,
    },
    /// End the server's access to the memory of a request. This precedes [`Effect::Answer`] and
    /// [`Effect::Lost`], once for each registration. The driver invalidates the registration before
    /// it reuses the memory, unless the server has done that.
    Withdraw {
        /// The request.
        request: RequestId,
        /// Whether the server has invalidated the registration.
        is_revoked: bool,
    },
    /// The answer to a request: one result for each of its steps, in order. Steps behind a failed
    /// one have failed too, mostly with the same status.
    Answer(RequestId, Vec<Result<Reply, Failure>>),
    /// The connection ended before the response arrived. [`super::replay`] decides whether another
    /// channel may send the request again.
    Lost(RequestId, Request, Fate),
    /// The server breaks an oplock. The core acknowledges the break if that is required, unless the
    /// CREATE left the acknowledgment to the driver.
    OplockBreak {
        /// The open.
        file_id: FileId,
        /// New oplock level.
        level: OplockLevel,
    },
    /// The server breaks a lease, or a part of it. The core acknowledges it as for an oplock.
    LeaseBreak {
        /// The lease.
        key: Guid,
        /// NewLeaseState. \[MS-SMB2\] 2.2.23.2
        state: u32,
    },
    /// End the connection. [`Effect::Lost`] has returned all pending requests before, and returns
    /// every later request.
    Disconnect(Violation),
}

/// Direction of an RDMA transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The server writes the data of a READ to the memory.
    Read,
    /// The server reads the data of a WRITE from the memory.
    Write,
}

/// State of a request without a response when its connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The client did not send it.
    Unsent,
    /// The client sent it, so the server may have executed it.
    Sent,
}

/// The location for the next bytes of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// A buffer for the whole frame, which the driver passes to `receive`.
    Frame,
    /// An unencrypted READ response that matches its request, as far as its start shows. The first
    /// `head` bytes of the frame are the message. The rest, `len` bytes, belongs at the start of
    /// the destination of `request`. The driver passes both to `receive_split`.
    Split {
        /// Length of the message before the data in bytes.
        head: usize,
        /// The request.
        request: RequestId,
        /// Length of the data in bytes; at most the length of the READ. The destination must stay
        /// valid until the data have arrived, even if the request ends before.
        len: u32,
    },
}

/// What came of a step of the login.
#[derive(Debug)]
pub enum Leg {
    /// Send this.
    Token(Vec<u8>),
    /// Done: the session key of the mechanism, empty for anonymous; and a last token to send, if
    /// the mechanism has one.
    Done {
        /// The whole key; its first 16 bytes are Session.SessionKey.
        session_key: Vec<u8>,
    },
    /// The token is not to be trusted.
    Failed,
}
