//! OPLOCK_BREAK: no oplock is granted yet, so nothing is being broken. \[MS-SMB2\] 3.3.5.22

use wire::Status;
use wire::oplock_break::Request;

use crate::server::context::{Context, Progress};
use crate::server::open::malformed;

/// Refuses the acknowledgement of a break that never was, as Windows and Samba do.
pub(crate) fn start(context: &mut Context<'_>, message: &[u8]) -> Result<Progress, Status> {
    match Request::decode(message).map_err(malformed)? {
        Request::Oplock(acknowledgement) => {
            context.open(acknowledgement.file_id)?;
            Err(Status::INVALID_OPLOCK_PROTOCOL)
        }
        Request::Lease(_) => Err(Status::OBJECT_NAME_NOT_FOUND),
    }
}
