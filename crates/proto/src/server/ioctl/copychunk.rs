//! SRV_COPYCHUNK and SRV_COPYCHUNK_WRITE: copies on the server. \[MS-SMB2\] 3.3.5.15.6
//!
//! Chunk by chunk, each an operation of its own: a CANCEL, or the end of the session, ends the
//! copy between two of them. What was copied until then stays, and the answer says how much: from
//! the first look at the source on, errors too come with the three counts.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use wire::Status;
use wire::access::AccessMask;
use wire::fsctl::{Chunk, CopyChunkRequest, CopyChunkResponse, CtlCode};
use wire::ioctl::Request;

use super::ending::Ending;
use super::request::Asked;
use super::resume_key;
use crate::effect::Outcome;
use crate::file::{CopyPlan, FileOp, Operation};
use crate::server::context::{Context, Progress, Reply};
use crate::server::fsa::MAX_FILE_SIZE;
use crate::server::fsa::byte_range::RangeAccess;
use crate::server::open::{Need, Open, malformed};
use crate::server::write::WRITES;

/// What a request may ask for: ServerSideCopyMaxNumberofChunks, ServerSideCopyMaxChunkSize and
/// ServerSideCopyMaxDataSize, as Windows and Samba have them. \[MS-SMB2\] 3.3.3
const LIMITS: CopyChunkResponse = CopyChunkResponse {
    chunks_written: 256,
    chunk_bytes_written: 1 << 20,
    total_bytes_written: 16 << 20,
};

/// Rights that let an open be read from: smbtorture smb2.ioctl.copy_chunk_bad_access copies from
/// one that may only execute.
const READS: AccessMask = AccessMask(AccessMask::FILE_READ_DATA.0 | AccessMask::FILE_EXECUTE.0);

/// A copy in progress.
pub(crate) struct Step {
    asked: Asked,
    source: Arc<Open>,
    target: Arc<Open>,
    /// The remaining chunks in reverse order; the last element is the current one.
    left: Vec<Chunk>,
    copied: CopyChunkResponse,
}

/// Starts on a request.
pub(super) fn start(
    context: &mut Context<'_>,
    request: &Request<'_>,
) -> Result<Progress<super::Step>, Status> {
    let target = context.open(request.file_id)?;
    if request.max_output_response < CopyChunkResponse::LEN {
        return Err(Status::INVALID_PARAMETER);
    }
    let CopyChunkRequest {
        source_key,
        mut chunks,
    } = CopyChunkRequest::decode(request.input).map_err(malformed)?;
    let asked = Asked::by(request);
    if !is_within_limits(&chunks) {
        return Ok(done(asked, Status::INVALID_PARAMETER, LIMITS));
    }
    let none = CopyChunkResponse::default();
    if chunks.is_empty() {
        return Ok(done(asked, Status::SUCCESS, none));
    }
    let found = resume_key::find(&context.session, &source_key);
    let found = found.and_then(|source| {
        check_rights(request.ctl_code, &source, &target)?;
        Ok(source)
    });
    let source = match found {
        Ok(source) => source,
        Err(status) => return Ok(done(asked, status, none)),
    };
    chunks.reverse();
    let step = Step {
        asked,
        source,
        target,
        left: chunks,
        copied: none,
    };
    Ok(step.go_on(context))
}

fn is_within_limits(chunks: &[Chunk]) -> bool {
    let is_allowed = |chunk: &Chunk| (1..=LIMITS.chunk_bytes_written).contains(&chunk.length);
    let total: u64 = chunks.iter().map(|chunk| u64::from(chunk.length)).sum();
    chunks.len() <= LIMITS.chunks_written as usize
        && chunks.iter().all(is_allowed)
        && total <= u64::from(LIMITS.total_bytes_written)
}

/// The right that SRV_COPYCHUNK, unlike SRV_COPYCHUNK_WRITE, needs on the target besides writing.
fn check_rights(ctl_code: CtlCode, source: &Open, target: &Open) -> Result<(), Status> {
    target.authorize(Need::Right(WRITES))?;
    if ctl_code == CtlCode::SRV_COPYCHUNK {
        target.authorize(Need::Right(AccessMask::FILE_READ_DATA))?;
    }
    source.authorize(Need::Right(READS))?;
    match source.is_directory || target.is_directory {
        true => Err(Status::ACCESS_DENIED),
        false => Ok(()),
    }
}

impl Step {
    /// Copies the next chunk.
    fn go_on(self, context: &mut Context<'_>) -> Progress<super::Step> {
        let Some(chunk) = self.left.last() else {
            return self.end(context, Status::SUCCESS);
        };
        match self.plan(context, chunk) {
            Ok(plan) => {
                let operation = FileOp::OnOpen(self.target.file, Operation::CopyRange(plan));
                let step = super::Step::CopyChunk(Box::new(self));
                context.wait(operation, step)
            }
            Err(status) => self.end(context, status),
        }
    }

    fn plan(&self, context: &Context<'_>, chunk: &Chunk) -> Result<CopyPlan, Status> {
        let Chunk {
            source_offset,
            target_offset,
            length,
        } = *chunk;
        context.check_wanted()?;
        let bytes = u64::from(length);
        let ends = [source_offset, target_offset].map(|offset| offset.checked_add(bytes));
        if !ends
            .iter()
            .all(|end| end.is_some_and(|end| end <= MAX_FILE_SIZE))
        {
            return Err(Status::INVALID_PARAMETER);
        }
        (self.source).check_locks(RangeAccess::Read, source_offset, bytes)?;
        (self.target).check_locks(RangeAccess::Write, target_offset, bytes)?;
        Ok(CopyPlan {
            source: self.source.file,
            source_offset,
            target_offset,
            length,
        })
    }

    pub(super) fn resume(
        mut self,
        context: &mut Context<'_>,
        outcome: Outcome,
    ) -> Result<Progress<super::Step>, Status> {
        // Also after an error: a part may have been written.
        context.data_changed(&self.target);
        let (count, status) = match outcome.expect_file() {
            Ok(outcome) => outcome.expect_copied(),
            Err(status) => return Ok(self.end(context, status)),
        };
        self.copied.total_bytes_written += count;
        context.count_read(&self.source, count.into());
        context.count_written(&self.target, count.into());
        if status != Status::SUCCESS {
            self.copied.chunk_bytes_written = count;
            return Ok(self.end(context, status));
        }
        self.left.pop();
        self.copied.chunks_written += 1;
        Ok(self.go_on(context))
    }

    fn end(self, context: &mut Context<'_>, status: Status) -> Progress<super::Step> {
        let reply = reply(self.asked, status, self.copied);
        match self.copied.total_bytes_written {
            0 => Progress::Done(reply),
            _ => Ending::start(context, &self.target, reply).widen(),
        }
    }
}

fn reply(asked: Asked, status: Status, response: CopyChunkResponse) -> Reply {
    asked.reply(status, &response.encode())
}

fn done(asked: Asked, status: Status, response: CopyChunkResponse) -> Progress<super::Step> {
    Progress::Done(reply(asked, status, response))
}

#[cfg(test)]
mod tests;
