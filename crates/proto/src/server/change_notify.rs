//! CHANGE_NOTIFY: refused, until directories are watched. \[MS-SMB2\] 3.3.5.19

use wire::Status;
use wire::change_notify::Request;

use crate::server::context::{Context, Progress};
use crate::server::open::malformed;

/// Refuses, as \[MS-SMB2\] 3.3.5.19 has it for a file system that does not watch: clients then look
/// by themselves from time to time.
pub(crate) fn start(context: &mut Context<'_>, message: &[u8]) -> Result<Progress, Status> {
    let request = Request::decode(message).map_err(malformed)?;
    context.check_charge(request.output_buffer_length)?;
    let open = context.open(request.file_id)?;
    if !open.is_directory || request.output_buffer_length > context.max_transact() {
        return Err(Status::INVALID_PARAMETER);
    }
    Err(Status::NOT_SUPPORTED)
}
