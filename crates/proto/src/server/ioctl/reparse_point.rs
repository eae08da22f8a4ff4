//! GET_REPARSE_POINT: hardly a file is one. \[MS-FSA\] 2.1.5.10

use wire::Status;
use wire::access::FileAttributes;
use wire::ioctl::Request;

use crate::effect::Outcome;
use crate::file::{FileOp, Operation};
use crate::server::context::{self, Context, Progress};

/// Starts on a request.
pub(super) fn get(context: &mut Context<'_>, request: &Request<'_>) -> Result<Progress, Status> {
    let open = context.open(request.file_id)?;
    let step = context::Step::Ioctl(super::Step::ReparsePoint);
    Ok(context.wait(FileOp::OnOpen(open.file, Operation::Stat), step))
}

/// Clients take NOT_A_REPARSE_POINT for the answer to whether a file is a link, and other statuses
/// for errors: smbprotocol does. What a link that is shown as such leads to is not told yet.
pub(super) fn resume(outcome: Outcome) -> Result<Progress, Status> {
    let metadata = outcome.expect_file()?.expect_metadata();
    let is_link = metadata.attributes.contains(FileAttributes::REPARSE_POINT);
    Err(match is_link {
        true => Status::INVALID_DEVICE_REQUEST,
        false => Status::NOT_A_REPARSE_POINT,
    })
}
