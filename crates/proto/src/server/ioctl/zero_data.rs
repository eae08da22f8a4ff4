//! SET_ZERO_DATA: bytes become zero, and a hole in a file that is sparse. \[MS-FSCC\] 2.3.71,
//! \[MS-FSA\] 2.1.5.10

use alloc::sync::Arc;
use core::ops::Range;

use wire::Status;
use wire::access::AccessMask;
use wire::fsctl::ZeroData;
use wire::ioctl::Request;

use super::ending::Ending;
use super::request::Asked;
use crate::effect::Outcome;
use crate::file::{FileOp, Operation};
use crate::server::context::{Context, Progress};
use crate::server::fsa::MAX_OFFSET;
use crate::server::fsa::byte_range::RangeAccess;
use crate::server::open::{Need, Open, malformed};

/// A range that becomes zero.
pub(crate) struct Step {
    asked: Asked,
    open: Arc<Open>,
    /// The range that may not be zero yet.
    left: Range<u64>,
}

/// Starts on a request. The right to append is not enough: smbtorture smb2.ioctl.sparse_perms.
pub(super) fn start(
    context: &mut Context<'_>,
    request: &Request<'_>,
) -> Result<Progress<super::Step>, Status> {
    let open = context.open(request.file_id)?;
    open.authorize(Need::Right(AccessMask::FILE_WRITE_DATA))?;
    let ZeroData {
        file_offset,
        beyond_final_zero,
    } = ZeroData::decode(request.input).map_err(malformed)?;
    let is_range = file_offset <= beyond_final_zero && beyond_final_zero <= MAX_OFFSET;
    if open.is_directory || !is_range {
        return Err(Status::INVALID_PARAMETER);
    }
    let asked = Asked::by(request);
    let left = file_offset..beyond_final_zero;
    if left.is_empty() {
        return Ok(Progress::Done(asked.reply(Status::SUCCESS, &[])));
    }
    open.check_locks(RangeAccess::Write, left.start, left.end - left.start)?;
    Ok(Step { asked, open, left }.go_on(context))
}

impl Step {
    fn go_on(self, context: &mut Context<'_>) -> Progress<super::Step> {
        let operation = FileOp::OnOpen(
            self.open.file,
            Operation::ZeroRange {
                range: self.left.clone(),
            },
        );
        let step = super::Step::ZeroData(self);
        context.wait(operation, step)
    }

    pub(super) fn resume(
        mut self,
        context: &mut Context<'_>,
        outcome: Outcome,
    ) -> Result<Progress<super::Step>, Status> {
        // Also after an error: a part may have been written.
        context.data_changed(&self.open);
        let end = outcome.expect_file()?.expect_zeroed();
        if end >= self.left.end {
            let reply = self.asked.reply(Status::SUCCESS, &[]);
            return Ok(Ending::start(context, &self.open, reply).widen());
        }
        assert!(end > self.left.start, "each step makes some bytes zero");
        context.check_wanted()?;
        self.left.start = end;
        Ok(self.go_on(context))
    }
}

#[cfg(test)]
mod tests;
