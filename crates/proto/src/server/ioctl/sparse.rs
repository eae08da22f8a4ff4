//! SET_SPARSE: whether a file may have holes. \[MS-FSCC\] 2.3.69, \[MS-FSA\] 2.1.5.10

use alloc::sync::Arc;

use wire::Status;
use wire::access::AccessMask;
use wire::change_notify::CompletionFilter;
use wire::ioctl::Request;

use super::request::Asked;
use crate::effect::Outcome;
use crate::file::{FileOp, Operation};
use crate::server::context::{Context, Progress, Reply};
use crate::server::open::{Need, Open};

/// Rights of which each lets an open set it: smbtorture smb2.ioctl.sparse_perms.
const SETS: AccessMask = AccessMask(
    AccessMask::FILE_WRITE_DATA.0
        | AccessMask::FILE_APPEND_DATA.0
        | AccessMask::FILE_WRITE_ATTRIBUTES.0,
);

/// The state of a request that waits for the change of the attribute.
pub(crate) struct Step {
    asked: Asked,
    open: Arc<Open>,
}

/// Starts a request. Without input the file becomes sparse; bytes after the first are ignored:
/// smbtorture smb2.ioctl.sparse_set_nobuf and sparse_set_oversize.
pub(super) fn start(
    context: &mut Context<'_>,
    request: &Request<'_>,
) -> Result<Progress<Step>, Status> {
    let open = context.open(request.file_id)?;
    open.authorize(Need::Right(SETS))?;
    if open.is_directory {
        return Err(Status::INVALID_PARAMETER);
    }
    let operation = FileOp::OnOpen(
        open.file,
        Operation::SetSparse {
            is_sparse: request.input.first() != Some(&0),
        },
    );
    let asked = Asked::by(request);
    Ok(context.wait(operation, Step { asked, open }))
}

impl Step {
    pub(super) fn resume(
        self,
        context: &mut Context<'_>,
        outcome: Outcome,
    ) -> Result<Reply, Status> {
        outcome.expect_file()?.expect_metadata();
        context.report_change(&self.open, CompletionFilter::ATTRIBUTES);
        Ok(self.asked.reply(Status::SUCCESS, &[]))
    }
}

#[cfg(test)]
mod tests;
