//! GET_REPARSE_POINT: hardly a file is one. \[MS-FSA\] 2.1.5.10

use wire::Status;
use wire::access::FileAttributes;
use wire::ioctl::Request;

use crate::effect::Outcome;
use crate::file::{FileOp, Operation};
use crate::server::context::{Context, Progress};

/// The state of a request that waits for the attributes of a file.
pub(crate) struct Step;

/// Starts on a request.
pub(super) fn get(
    context: &mut Context<'_>,
    request: &Request<'_>,
) -> Result<Progress<Step>, Status> {
    let open = context.open(request.file_id)?;
    Ok(context.wait(FileOp::OnOpen(open.file, Operation::Stat), Step))
}

impl Step {
    /// The status of the answer, which is never a success. Clients take NOT_A_REPARSE_POINT for
    /// "not a link", and other statuses for errors: smbprotocol does. The target of a link that
    /// the file system shows as such is not reported yet.
    pub(super) fn resume(self, outcome: Outcome) -> Status {
        let metadata = match outcome.expect_file() {
            Ok(outcome) => outcome.expect_metadata(),
            Err(status) => return status,
        };
        match metadata.attributes.contains(FileAttributes::REPARSE_POINT) {
            true => Status::INVALID_DEVICE_REQUEST,
            false => Status::NOT_A_REPARSE_POINT,
        }
    }
}
