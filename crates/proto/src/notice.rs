//! Notices: messages from one connection to another connection of the process.

use wire::create_context::LeaseState;

use crate::id::OpId;

/// The break of an oplock or a lease of which a client must be notified. \[MS-SMB2\] 2.2.23
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CachingBreak {
    /// A session of the client: that of the open.
    pub session: wire::SessionId,
    /// The open that holds the oplock, or an open of the lease.
    pub file_id: wire::FileId,
    /// The lease; `None` for an oplock.
    pub lease: Option<LeaseBreak>,
    /// The caching rights before the break.
    pub from: LeaseState,
    /// The caching rights that the client may hold after the break.
    pub to: LeaseState,
}

/// The part of a [`CachingBreak`] that a lease has and an oplock has not. \[MS-SMB2\] 2.2.23.2
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseBreak {
    /// The ClientGuid of the client that holds the lease.
    pub client: wire::Guid,
    /// LeaseKey: the client's identifier of the lease.
    pub key: wire::Guid,
    /// Number of state changes of the lease, including this one; 0 for a lease of version 1.
    pub epoch: u16,
    /// Whether the client must acknowledge the break.
    pub needs_ack: bool,
}

impl CachingBreak {
    /// The loss of all rights of an oplock, without acknowledgment.
    pub(crate) fn of_oplock(session: wire::SessionId, file_id: wire::FileId) -> Self {
        Self {
            session,
            file_id,
            lease: None,
            from: LeaseState::READ_CACHING,
            to: LeaseState::NONE,
        }
    }
}

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
    /// A tree connect of the session has ended, because its share was removed. Requests to it fail
    /// with NETWORK_NAME_DELETED, and its opens are closed.
    TreeClosed(wire::SessionId, wire::TreeId),
    /// An administrator closes an open of the session. The number is the persistent part of its
    /// FileId. Requests to it fail with FILE_CLOSED. \[MS-SMB2\] 3.3.4.13
    OpenClosed(wire::SessionId, u64),
    /// All opens of this session are closed, and a SESSION_SETUP of the receiving connection waited
    /// for that: a client that reconnects does not conflict with the opens of its previous session.
    OpensClosed(wire::SessionId),
    /// The server withdraws caching rights of an oplock or a lease (a break). The connection
    /// carries the session and sends the oplock break or lease break notification to the client.
    /// \[MS-SMB2\] 3.3.4.6, 3.3.4.7
    BreakCaching(CachingBreak),
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
