//! TREE_DISCONNECT. \[MS-SMB2\] 3.3.5.8

use wire::{Status, tree_disconnect};

use crate::audit::{Action, Operation};
use crate::effect::Effects;
use crate::server::audit::Draft;
use crate::server::connection::Connection;
use crate::server::connection::task::{Flow, Request, Task, Then};
use crate::server::context::Reply;

impl Connection {
    /// Leaves a share: the answer comes when what runs in it has ended and what was open in it is
    /// closed.
    pub(super) fn tree_disconnect(
        &mut self,
        task: &mut Task,
        request: &mut Request,
        message: &[u8],
        effects: &mut Effects,
    ) -> Result<Flow, Status> {
        tree_disconnect::Request::decode(message).map_err(|_| Status::INVALID_PARAMETER)?;
        let session = Self::require_session(request)?;
        let tree = self.require_tree(task, request, &session)?;
        if tree.share.audit.selection().has_any(Operation::Connect) {
            request.audit = Some(Draft::new(&session, &tree.share, Action::Disconnect));
        }
        session.trees.lock().remove(&tree.id);
        self.close_tree(session, tree.id, Some(task.id), effects);
        let reply = Reply::message(|body| tree_disconnect::Response.encode(body));
        Ok(Flow::WaitUnasked(Then::Teardown(reply)))
    }
}
