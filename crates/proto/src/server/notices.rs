//! The notices that one call into a table of the server produces.

use alloc::vec::Vec;

use crate::id::{ConnectionId, OpId};
use crate::notice::Notice;

/// Notices and the connections that receive them. A table collects them while it is locked;
/// [`Server::post`](crate::server::Server::post) delivers them afterwards.
pub(crate) type Notices = Vec<(ConnectionId, Notice)>;

/// A request that waits in a table of the server. A notice with its operation wakes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waiter {
    /// The connection of the request.
    pub(crate) connection: ConnectionId,
    /// The operation under which the connection keeps the request.
    pub(crate) op: OpId,
}
