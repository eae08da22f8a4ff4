//! LOCK: refused, until there are byte-range locks. \[MS-SMB2\] 3.3.5.14

use wire::Status;
use wire::lock::Request;

use crate::server::context::{Context, Progress};
use crate::server::open::malformed;

/// Refuses, as \[MS-FSA\] 2.1.5.8 has it for a file system without locks. A grant without a lock
/// behind it would cost a client its data.
pub(crate) fn start(context: &mut Context<'_>, message: &[u8]) -> Result<Progress, Status> {
    let request = Request::decode(message).map_err(malformed)?;
    // [MS-SMB2] 3.3.5.14: there is something to lock or unlock.
    if request.locks.is_empty() {
        return Err(Status::INVALID_PARAMETER);
    }
    context.open(request.file_id)?;
    Err(Status::INVALID_DEVICE_REQUEST)
}
