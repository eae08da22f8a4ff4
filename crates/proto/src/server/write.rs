//! WRITE.

use wire::Status;

use crate::effect::Outcome;
use crate::server::context::{Context, Progress};

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
