//! Notices: messages from one connection to another connection of the process.

use wire::access::OplockLevel;

use crate::id::OpId;

/// A message from one connection to another. The driver delivers it with `Connection::notice`.
///
/// Where a notice names an operation, the core of the receiving connection allocated the `OpId`;
/// no driver ran it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A session that the connection carries has ended: the client logged off on another channel,
    /// reconnected elsewhere, or an administrator closed it. \[MS-SMB2\] 3.3.5.5.3, 3.3.5.6
    SessionClosed(wire::SessionId),
    /// All opens of this session are closed, and a request waited for that: a client that
    /// reconnects does not conflict with the opens of its previous session.
    OpensClosed(wire::SessionId),
    /// An oplock of an open breaks. The connection carries the session of the open and sends the
    /// oplock break notification to the client. \[MS-SMB2\] 3.3.4.6
    BreakOplock {
        /// The session.
        session: wire::SessionId,
        /// The open.
        file_id: wire::FileId,
        /// The oplock level that the client may hold after the break.
        level: OplockLevel,
    },
    /// An oplock break is complete. The operation waited for it.
    OplockBroken(OpId),
    /// A request for a byte-range lock is decided. The operation waited for it.
    LockSettled {
        /// The operation that waited.
        op: OpId,
        /// Whether the server granted the lock. Otherwise the open was closed.
        is_granted: bool,
    },
    /// A directory has changed, or its watch has ended. The operation watches the directory.
    DirectoryChanged(OpId),
    /// A pipe contains data, or has ended. The operation waited for that.
    PipeReadable(OpId),
}
