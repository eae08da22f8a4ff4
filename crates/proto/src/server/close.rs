//! CLOSE.

use wire::Status;

use crate::effect::{Effect, Effects, FileOp, OpId, Outcome};
use crate::server::Server;
use crate::server::context::{Context, Progress};
use crate::server::open::Open;

/// What goes on once the world has answered.
pub(crate) enum Step {}

impl Step {
    pub(crate) fn resume(
        self,
        _context: &mut Context<'_>,
        _outcome: Outcome,
    ) -> Result<Progress, Status> {
        match self {}
    }
}

/// Starts on a request.
pub(crate) fn start(_context: &mut Context<'_>, _message: &[u8]) -> Result<Progress, Status> {
    Err(Status::NOT_IMPLEMENTED)
}

/// Closes an open that nobody asked to close: its tree, session or connection goes. It is out of
/// the session's table already, and no request on it is under way. Every operation is numbered
/// from `next_op` on; their outcomes are waited for and ignored.
pub(crate) fn abandon(_server: &Server, open: &Open, next_op: &mut u64, effects: &mut Effects) {
    *next_op += 1;
    effects.push(Effect::File(OpId(*next_op), FileOp::Close(open.file)));
}
