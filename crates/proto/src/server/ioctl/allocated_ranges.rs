//! QUERY_ALLOCATED_RANGES: which bytes of a file are no holes. \[MS-FSCC\] 2.3.51, \[MS-FSA\]
//! 2.1.5.10

use alloc::vec::Vec;
use core::ops::Range;

use wire::Status;
use wire::access::AccessMask;
use wire::fsctl::AllocatedRange;
use wire::ioctl::Request;

use super::request::Asked;
use crate::effect::Outcome;
use crate::file::{FileOp, Operation};
use crate::server::context::{Context, Progress, Reply};
use crate::server::fsa::MAX_OFFSET;
use crate::server::open::{Need, malformed};

/// Ranges of an answer at most: 64 KiB of them. A client with a larger buffer asks again from the
/// end of the last one on, as with any answer that is cut short.
const MAX_RANGES: usize = 4096;

/// A file that is being asked.
pub(crate) struct Step {
    asked: Asked,
    /// Maximum number of ranges in the answer.
    capacity: usize,
}

/// Starts on a request. Locks of others do not matter: smbtorture smb2.ioctl.sparse_lock.
pub(super) fn start(
    context: &mut Context<'_>,
    request: &Request<'_>,
) -> Result<Progress<Step>, Status> {
    let open = context.open(request.file_id)?;
    open.authorize(Need::Right(AccessMask::FILE_READ_DATA))?;
    let AllocatedRange {
        file_offset,
        length,
    } = AllocatedRange::decode(request.input).map_err(malformed)?;
    let end = file_offset.checked_add(length);
    let end = end.filter(|end| *end <= MAX_OFFSET && !open.is_directory);
    let range = file_offset..end.ok_or(Status::INVALID_PARAMETER)?;
    let capacity = request.max_output_response as usize / AllocatedRange::LEN;
    let capacity = capacity.min(MAX_RANGES);
    let operation = FileOp::OnOpen(
        open.file,
        Operation::AllocatedRanges {
            range,
            // One more range shows whether the file has more than fit.
            limit: capacity + 1,
        },
    );
    let asked = Asked::by(request);
    Ok(context.wait(operation, Step { asked, capacity }))
}

impl Step {
    pub(super) fn resume(self, outcome: Outcome) -> Result<Reply, Status> {
        let ranges = outcome.expect_file()?.expect_ranges();
        let status = match self.capacity {
            capacity if ranges.len() <= capacity => Status::SUCCESS,
            // Not even one fits: smbtorture smb2.ioctl.sparse_qar_malformed.
            0 => return Err(Status::BUFFER_TOO_SMALL),
            _ => Status::BUFFER_OVERFLOW,
        };
        let mut output = Vec::new();
        for Range { start, end } in ranges.into_iter().take(self.capacity) {
            let range = AllocatedRange {
                file_offset: start,
                length: end - start,
            };
            range.encode(&mut output);
        }
        Ok(self.asked.reply(status, &output))
    }
}

#[cfg(test)]
mod tests;
