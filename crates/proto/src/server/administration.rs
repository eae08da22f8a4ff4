//! Sessions and opens that an administrator ends. \[MS-SMB2\] 3.3.4.12, 3.3.4.13

use alloc::sync::Arc;
use alloc::vec::Vec;

use wire::SessionId;

use crate::id::ConnectionId;
use crate::notice::Notice;
use crate::server::Server;
use crate::server::session::Session;

impl Server {
    /// Ends a session and closes all its opens, also durable ones. The client may log in again.
    /// \[MS-SMB2\] 3.3.4.12
    ///
    /// No request of the session starts after the call. Returns a notice for each of its
    /// connections, which the driver must deliver: the connection then closes the opens. `None` if
    /// there is no such session.
    pub fn end_session(&self, id: SessionId) -> Option<Vec<(ConnectionId, Notice)>> {
        let session = self.sessions.lock().get(id)?.clone();
        Some(self.close_session(&session))
    }

    /// Closes an open file, directory or pipe. `id` is the persistent part of its FileId, which
    /// identifies it within the server. Later requests of the client to it fail with FILE_CLOSED,
    /// and its byte-range locks and its lease or oplock end. Also closes a durable open that has no
    /// session. \[MS-SMB2\] 3.3.4.13
    ///
    /// Returns a notice for each connection of its session, which the driver must deliver: the
    /// first of them closes the open. The driver also calls [`next_timeout`](Self::next_timeout)
    /// again, for opens that outlived a session. `None` if there is no such open.
    pub fn close_open(&self, id: u64) -> Option<Vec<(ConnectionId, Notice)>> {
        if self.disconnected.lock().give_up(id) {
            return Some(Vec::new());
        }
        let sessions: Vec<_> = self.sessions.lock().values().cloned().collect();
        let session = sessions.iter().find(|session| has_open(session, id))?;
        let connections = session.channels.alive().into_iter();
        let notice = |connection| (connection, Notice::OpenClosed(session.id, id));
        Some(connections.map(notice).collect())
    }
}

fn has_open(session: &Arc<Session>, id: u64) -> bool {
    let is_file = (session.opens.lock().values()).any(|open| open.id.persistent == id);
    is_file || (session.pipes.lock().values()).any(|pipe| pipe.id.persistent == id)
}
