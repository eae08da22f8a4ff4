//! ECHO. \[MS-SMB2\] 3.3.5.17

use wire::{Status, echo};

use crate::server::context::Reply;

/// Answers. It needs no session.
pub(super) fn serve(message: &[u8]) -> Result<Reply, Status> {
    echo::Request::decode(message).map_err(|_| Status::INVALID_PARAMETER)?;
    Ok(Reply::message(|body| echo::Response.encode(body)))
}
