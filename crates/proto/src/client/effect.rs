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

/// What is to be done, in order. The driver owns and reuses it.
pub type Effects = Queue<Effect>;

/// One thing to be done.
#[derive(Debug)]
pub enum Effect {
    /// Send a frame. Frames go out in the order of their effects. A payload's token is the number
    /// of the request whose data it is.
    Send(Outbound),
    /// Take the login one step further with the server's token, and tell
    /// [`Connection::authenticated`](super::Connection::authenticated). The first of a connection
    /// is empty and asks for the first word; later ones may be empty, too.
    Authenticate(Vec<u8>),
    /// The connection carries the session: requests may come.
    Ready(Arc<Session>),
    /// Name the memory of a request's data, for the server to use it from now on, and tell
    /// [`Connection::exposed`](super::Connection::exposed), at once or later. Only where the
    /// [`Carrier`](crate::carrier::Carrier) has RDMA.
    Expose {
        /// Whose data.
        request: RequestId,
        /// Which way they go.
        direction: Direction,
        /// Bytes, from the start of the source or destination.
        length: u32,
    },
    /// The server may use the memory of a request no more. Comes before [`Effect::Answer`] and
    /// [`Effect::Lost`]; once for each time that memory was named. Unless the server took the key
    /// back the driver does, before the memory serves anything else.
    Withdraw {
        /// Whose memory.
        request: RequestId,
        /// Whether the server has taken the key back.
        is_revoked: bool,
    },
    /// The answer to a request: one result for each of its steps, in order. Steps behind one that
    /// failed have failed, too, mostly with the same status.
    Answer(RequestId, Vec<Result<Reply, Failure>>),
    /// The connection ended before the answer came. Whether it may be sent again elsewhere is for
    /// [`super::replay`] to say.
    Lost(RequestId, Request, Fate),
    /// The server takes an oplock away. The core acknowledges by itself where that is due, unless
    /// the request that made the open said that the driver does.
    OplockBreak {
        /// The open.
        file_id: FileId,
        /// What is left of it.
        level: OplockLevel,
    },
    /// The server takes (part of) a lease away; acknowledged as above.
    LeaseBreak {
        /// The lease.
        key: Guid,
        /// What is left of it: \[MS-SMB2\] 2.2.23.2, NewLeaseState.
        state: u32,
    },
    /// End the connection: nothing more will be said. All that is unanswered was given back with
    /// [`Effect::Lost`] before; what is asked later comes back in the same way.
    Disconnect(Violation),
}

/// What the server does with memory that was named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// It writes there what it reads from a file.
    Read,
    /// It reads from there what it writes to a file.
    Write,
}

/// What became of a request that got no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It never left.
    Unsent,
    /// It left: the server may have done it.
    Sent,
}

/// Where the next bytes of the stream should land.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Gather the whole frame and give it to `receive`.
    Frame,
    /// A READ answer in the clear that is what was asked for, as far as its head shows: the frame's
    /// first `head` bytes are message, the rest, `len` bytes, belong at the start of the
    /// destination of `request`. Give both to `receive_split`.
    Split {
        /// Bytes.
        head: usize,
        /// Whose data follow.
        request: RequestId,
        /// Bytes; never more than the request asked for. The destination must stay until they
        /// are there, even if the request is given up on meanwhile.
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
