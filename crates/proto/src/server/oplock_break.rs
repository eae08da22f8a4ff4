//! OPLOCK_BREAK.

use wire::Status;

use crate::server::context::{Context, Progress};

/// Starts on a request.
pub(crate) fn start(_context: &mut Context<'_>, _message: &[u8]) -> Result<Progress, Status> {
    Err(Status::NOT_IMPLEMENTED)
}
