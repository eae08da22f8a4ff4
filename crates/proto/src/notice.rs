//! Notices: messages from one connection to another connection of the process.

use wire::create_context::LeaseState;

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
    /// The caching rights of an oplock or a lease break. The connection carries the session and
    /// sends the oplock break or lease break notification to the client. \[MS-SMB2\] 3.3.4.6,
    /// 3.3.4.7
    BreakCaching {
        /// The session of the open.
        session: wire::SessionId,
        /// The open with the oplock, or an open of the lease.
        file_id: wire::FileId,
        /// The key of the lease; `None` for an oplock.
        lease_key: Option<wire::Guid>,
        /// The rights before the break.
        from: LeaseState,
        /// The rights that the client may hold after the break.
        to: LeaseState,
    },
    /// A break of caching rights is complete. The operation waited for it.
    CachingBroken(OpId),
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
