//! LOGOFF. \[MS-SMB2\] 3.3.5.6

use wire::{Status, logoff};

use crate::effect::Effects;
use crate::server::connection::Connection;
use crate::server::connection::task::{Flow, Request, Task, Then};
use crate::server::context::Reply;
use crate::time::Now;

impl Connection {
    /// Ends a session on all its channels: the answer comes when what runs on it has ended and
    /// what it had open is closed.
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
        let reply = Reply::message(|body| logoff::Response.encode(body));
        if !self.await_end(&session, task.id, None) {
            return Ok(Flow::Done(reply));
        }
        session.state.lock().leave_opens();
        self.end_session(now, &session, effects);
        Ok(Flow::WaitUnasked(Then::Teardown(reply)))
    }
}
