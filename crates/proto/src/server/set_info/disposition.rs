//! Whether a file goes with its last open. \[MS-FSA\] 2.1.5.15.3

use alloc::sync::Arc;

use wire::Status;
use wire::fscc::FileDispositionInformation;

use super::{done, wait};
use crate::effect::Outcome;
use crate::file::{FileOp, Operation};
use crate::report::NeededAccess;
use crate::server::context::{Context, Progress};
use crate::server::open::{Open, malformed};

/// The state of a request that waits for the check of a deletion.
pub(crate) enum Step {
    /// The user may delete it: READONLY and the rights on the directory are checked.
    Allowed(Arc<Open>),
    /// It is a directory that holds nothing.
    Empty(Arc<Open>),
    /// Other clients give up HANDLE_CACHING.
    Handles(Arc<Open>),
}

pub(super) fn start(
    context: &mut Context<'_>,
    open: Arc<Open>,
    buffer: &[u8],
) -> Result<Progress<super::Step>, Status> {
    let information = FileDispositionInformation::decode(buffer).map_err(malformed)?;
    if !information.is_delete_pending {
        let parked = context.server.files.clear_delete_pending(open.key);
        if let Some(file) = parked {
            context.run(FileOp::OnOpen(file, Operation::Close));
        }
        return Ok(done());
    }
    let path = context.server.files.path(open.key, open.file);
    if path.is_none_or(|path| path.is_root()) {
        return Err(Status::CANNOT_DELETE);
    }
    let operation = FileOp::OnOpen(open.file, Operation::CheckDelete);
    let step = super::Step::Disposition(Step::Allowed(open));
    Ok(wait(context, operation, step))
}

impl Step {
    pub(super) fn resume(
        self,
        context: &mut Context<'_>,
        outcome: Outcome,
    ) -> Result<Progress<super::Step>, Status> {
        if let Self::Handles(open) = self {
            outcome.expect_woken()?;
            return Ok(delete(context, open));
        }
        match outcome.expect_file() {
            Ok(outcome) => outcome.expect_done(),
            Err(status) => {
                let (Self::Allowed(open) | Self::Empty(open) | Self::Handles(open)) = &self;
                let path = context.server.files.path(open.key, open.file);
                context.report_denied(status, || {
                    let remove = |path| (path, NeededAccess::Remove);
                    path.map(remove).into_iter().collect()
                });
                return Err(status);
            }
        }
        match self {
            Self::Allowed(open) if open.is_directory => {
                let operation = FileOp::OnOpen(open.file, Operation::CheckEmpty);
                let step = super::Step::Disposition(Self::Empty(open));
                Ok(wait(context, operation, step))
            }
            Self::Allowed(open) | Self::Empty(open) | Self::Handles(open) => {
                Ok(delete(context, open))
            }
        }
    }
}

/// Marks the file for deletion, once no other client may reuse an open of it that its application
/// has closed. smbtorture smb2.lease.unlink
fn delete(context: &mut Context<'_>, open: Arc<Open>) -> Progress<super::Step> {
    if let Some(parked) = context.wait_for_handle_leases(&open) {
        let step = super::Step::Disposition(Step::Handles(open));
        return Progress::Park(parked, step);
    }
    context.server.files.set_delete_pending(open.key, open.file);
    let notices = context.server.watches.wake(open.key);
    context.post(notices);
    done()
}
