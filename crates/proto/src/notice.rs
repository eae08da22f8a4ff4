//! Notices: messages from one connection to another connection of the process.

use wire::create_context::LeaseState;

use crate::id::OpId;

/// A fact that one connection of the server reports to another connection of the same process, such
/// as an ended session or a granted lock. The I/O driver delivers it with `Connection::notice`.
///
/// Where a notice names an operation, the protocol core of the receiving connection allocated the
/// `OpId`; no driver ran it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A session that the connection carries has ended: the client logged off on another channel,
    /// reconnected elsewhere, or an administrator closed it. \[MS-SMB2\] 3.3.5.5.3, 3.3.5.6
    SessionClosed(wire::SessionId),
    /// All opens of this session are closed, and a SESSION_SETUP of the receiving connection waited
    /// for that: a client that reconnects does not conflict with the opens of its previous session.
    OpensClosed(wire::SessionId),
    /// The server withdraws caching rights of an oplock or a lease (a break). The connection
    /// carries the session and sends the oplock break or lease break notification to the client.
    /// \[MS-SMB2\] 3.3.4.6, 3.3.4.7
    BreakCaching {
        /// The session of the open that holds the rights.
        session: wire::SessionId,
        /// The open that holds the oplock, or an open of the lease.
        file_id: wire::FileId,
        /// The key of the lease; `None` for an oplock.
        lease_key: Option<wire::Guid>,
        /// The caching rights before the break.
        from: LeaseState,
        /// The caching rights that the client may hold after the break.
        to: LeaseState,
    },
    /// A break of caching rights is complete: the client has acknowledged it, or its time limit has
    /// passed. This operation of the receiving connection waited for that.
    CachingBroken(OpId),
    /// The server has decided about a byte-range lock for which a request of the receiving
    /// connection waited.
    LockSettled {
        /// The operation of the receiving connection that waited.
        op: OpId,
        /// Whether the server granted the lock. Otherwise the open was closed.
        is_granted: bool,
    },
    /// A watched directory has changed, or its watch has ended. This operation of the receiving
    /// connection waits for changes.
    DirectoryChanged(OpId),
    /// A pipe has data to read, or has ended. This operation of the receiving connection waited for
    /// that.
    PipeReadable(OpId),
}
