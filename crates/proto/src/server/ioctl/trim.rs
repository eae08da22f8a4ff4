//! FILE_LEVEL_TRIM: the client no longer needs the data of some ranges of a file. \[MS-FSCC\]
//! 2.3.13, \[MS-FSA\] 2.1.5.10.6
//!
//! A trim is a hint. A later read returns the old data or zeros. Bytes outside of the ranges, also
//! in the pages that a range covers in part, never change. Samba does not have the function.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use wire::Status;
use wire::access::AccessMask;
use wire::fsctl::{FileLevelTrim, FileLevelTrimOutput, TrimRange};
use wire::ioctl::Request;

use super::ending::Ending;
use super::request::Asked;
use crate::effect::Outcome;
use crate::file::{FileOp, Operation};
use crate::server::context::{Context, Progress, Reply};
use crate::server::fsa::byte_range::RangeAccess;
use crate::server::open::{Need, Open, malformed};

/// Bytes of a page, to which the server cuts each range, as Windows does. \[MS-FSA\] 2.1.5.10.6
const PAGE: u64 = 4096;
/// Ranges that one request processes at most: 64 KiB of them. The response has the number of
/// processed ranges, so the client can request the others again.
const MAX_RANGES: usize = 4096;

/// A trim in progress.
pub(crate) struct Step {
    asked: Asked,
    open: Arc<Open>,
    /// The remaining ranges in reverse order; the last element is the current one.
    left: Vec<TrimRange>,
    processed: u32,
    /// Whether the client has space for the number of processed ranges.
    has_output: bool,
    /// Whether the file system has discarded data.
    is_changed: bool,
}

/// Starts on a request.
pub(super) fn start(
    context: &mut Context<'_>,
    request: &Request<'_>,
) -> Result<Progress<super::Step>, Status> {
    let open = context.open(request.file_id)?;
    open.authorize(Need::Right(AccessMask::FILE_WRITE_DATA))?;
    let max_output = request.max_output_response as usize;
    let has_output = max_output >= FileLevelTrimOutput::LEN;
    let FileLevelTrim { key: _, ranges } =
        FileLevelTrim::decode(request.input).map_err(malformed)?;
    let mut left = ranges;
    if left.is_empty() || open.is_directory || !(has_output || max_output == 0) {
        return Err(Status::INVALID_PARAMETER);
    }
    left.truncate(MAX_RANGES);
    left.reverse();
    let step = Step {
        asked: Asked::by(request),
        open,
        left,
        processed: 0,
        has_output,
        is_changed: false,
    };
    step.go_on(context)
}

impl Step {
    /// Processes ranges up to the next one that has data to discard.
    fn go_on(mut self, context: &mut Context<'_>) -> Result<Progress<super::Step>, Status> {
        while let Some(range) = self.left.last() {
            match self.whole_pages(context, *range) {
                Ok(range) if range.is_empty() => self.count(),
                Ok(range) => {
                    let file = self.open.file;
                    let step = super::Step::Trim(Box::new(self));
                    return Ok(context.wait(FileOp::OnOpen(file, Operation::Trim { range }), step));
                }
                Err(status) => return self.stop(context, status),
            }
        }
        Ok(self.end(context))
    }

    /// The whole pages of a range. No other client has locked it.
    fn whole_pages(&self, context: &Context<'_>, range: TrimRange) -> Result<Range<u64>, Status> {
        let TrimRange { offset, length } = range;
        context.check_wanted()?;
        let end = offset.checked_add(length);
        let end = end.ok_or(Status::INTEGER_OVERFLOW)?;
        self.open.check_locks(RangeAccess::Write, offset, length)?;
        let start = offset.checked_next_multiple_of(PAGE).unwrap_or(u64::MAX);
        Ok(start..end - end % PAGE)
    }

    fn count(&mut self) {
        self.left.pop();
        self.processed += 1;
    }

    pub(super) fn resume(
        mut self,
        context: &mut Context<'_>,
        outcome: Outcome,
    ) -> Result<Progress<super::Step>, Status> {
        // Also after an error: a part may have changed.
        context.data_changed(&self.open);
        self.is_changed = true;
        match outcome.expect_file() {
            Ok(outcome) => outcome.expect_done(),
            Err(status) => return self.stop(context, status),
        }
        self.count();
        self.go_on(context)
    }

    /// Ends at a range that fails: the response has the number of ranges before it.
    fn stop(
        self,
        context: &mut Context<'_>,
        status: Status,
    ) -> Result<Progress<super::Step>, Status> {
        match self.processed {
            0 => Err(status),
            _ => Ok(self.end(context)),
        }
    }

    fn end(self, context: &mut Context<'_>) -> Progress<super::Step> {
        let reply = self.reply();
        match self.is_changed {
            true => Ending::start(context, &self.open, reply).widen(),
            false => Progress::Done(reply),
        }
    }

    fn reply(&self) -> Reply {
        let processed = self.processed;
        let output = match self.has_output {
            true => FileLevelTrimOutput { processed }.encode(),
            false => Vec::new(),
        };
        self.asked.reply(Status::SUCCESS, &output)
    }
}

#[cfg(test)]
mod tests;
