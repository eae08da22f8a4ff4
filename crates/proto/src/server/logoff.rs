//! LOGOFF. \[MS-SMB2\] 3.3.5.6

use wire::{Status, logoff};

use crate::effect::{Effects, Now};
use crate::server::connection::Connection;
use crate::server::context::Reply;
use crate::server::drain::After;
use crate::server::task::{Flow, Request, Task, Then};

impl Connection {
    /// Ends a session: the answer comes when what runs on it has ended and what it had open is
    /// closed.
    pub(super) fn logoff(
        &mut self,
        now: Now,
        task: &Task,
        request: &Request,
        message: &[u8],
        effects: &mut Effects,
    ) -> Result<Flow, Status> {
        logoff::Request::decode(message).map_err(|_| Status::INVALID_PARAMETER)?;
        let session = Self::require_session(request)?;
        self.close_session(now, session.id, After::Resume(task.id), effects);
        let reply = Reply::message(|body| logoff::Response.encode(body));
        Ok(Flow::WaitUnasked(Then::Farewell(reply)))
    }
}
