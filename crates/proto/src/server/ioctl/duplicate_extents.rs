//! DUPLICATE_EXTENTS_TO_FILE and its extended form: a range of the target shares the extents of the
//! source. \[MS-FSCC\] 2.3.7, 2.3.9, \[MS-FSA\] 2.1.5.10.3
//!
//! The statuses are those of Windows, as smbtorture smb2.ioctl.dup_extents_* and Samba have them:
//! NOT_SUPPORTED for a range past the end of the source, and for a target that is not SPARSE while
//! the source is; a range past the end of the target is cut there. Byte-range locks do not matter.

use alloc::boxed::Box;
use alloc::sync::Arc;

use wire::access::{AccessMask, FileAttributes};
use wire::fsctl::{CtlCode, DuplicateExtents};
use wire::ioctl::Request;
use wire::{FileId, Status};

use super::ending::Ending;
use super::request::Asked;
use crate::effect::Outcome;
use crate::file::{ClonePlan, FileOp, Metadata, Operation};
use crate::server::context::{Context, Progress};
use crate::server::fsa::MAX_FILE_SIZE;
use crate::server::open::{Need, Open, malformed};

/// A duplication in progress.
pub(crate) struct Step {
    asked: Asked,
    source: Arc<Open>,
    target: Arc<Open>,
    range: DuplicateExtents,
    stage: Stage,
}

enum Stage {
    /// The metadata of the source are being read.
    Source,
    /// The metadata of the target are being read; those of the source are known.
    Target(Box<Metadata>),
    /// The file system shares the extents.
    Clone,
}

/// Starts on a request.
pub(super) fn start(
    context: &mut Context<'_>,
    request: &Request<'_>,
) -> Result<Progress<super::Step>, Status> {
    let target = context.open(request.file_id)?;
    let range = match request.ctl_code {
        CtlCode::DUPLICATE_EXTENTS_TO_FILE_EX => DuplicateExtents::decode_ex(request.input),
        _ => DuplicateExtents::decode(request.input),
    };
    let range = range.map_err(malformed)?;
    // Windows says so, where [MS-FSCC] 2.3.8 has INVALID_PARAMETER.
    let source = find(context, range.source).ok_or(Status::INVALID_HANDLE)?;
    let is_same_volume =
        source.file.share == target.file.share && source.key.volume == target.key.volume;
    if !is_same_volume {
        return Err(Status::INVALID_HANDLE);
    }
    target.authorize(Need::Right(AccessMask::FILE_WRITE_DATA))?;
    source.authorize(Need::Right(AccessMask::FILE_READ_DATA))?;
    let is_range = [range.source_offset, range.target_offset]
        .iter()
        .filter_map(|offset| offset.checked_add(range.byte_count))
        .filter(|end| *end <= MAX_FILE_SIZE)
        .count()
        == 2;
    if source.is_directory || target.is_directory || !is_range {
        return Err(Status::INVALID_PARAMETER);
    }
    let step = Step {
        asked: Asked::by(request),
        source,
        target,
        range,
        stage: Stage::Source,
    };
    let file = step.source.file;
    Ok(step.wait(context, FileOp::OnOpen(file, Operation::Stat)))
}

/// An open of the session.
fn find(context: &Context<'_>, id: FileId) -> Option<Arc<Open>> {
    let opens = context.session.opens.lock();
    opens
        .get(&id.volatile)
        .filter(|open| open.id == id)
        .cloned()
}

impl Step {
    fn wait(self, context: &mut Context<'_>, operation: FileOp) -> Progress<super::Step> {
        context.wait(operation, super::Step::DuplicateExtents(Box::new(self)))
    }

    pub(super) fn resume(
        mut self,
        context: &mut Context<'_>,
        outcome: Outcome,
    ) -> Result<Progress<super::Step>, Status> {
        match self.stage {
            Stage::Source => {
                let source = outcome.expect_file()?.expect_metadata();
                self.stage = Stage::Target(Box::new(source));
                let file = self.target.file;
                Ok(self.wait(context, FileOp::OnOpen(file, Operation::Stat)))
            }
            Stage::Target(ref source) => {
                let target = outcome.expect_file()?.expect_metadata();
                let length = self.cut(source, &target)?;
                self.clone_range(context, length)
            }
            Stage::Clone => {
                // Also after an error: the file system may have changed a part.
                context.data_changed(&self.target);
                outcome.expect_file()?.expect_done();
                let reply = self.asked.reply(Status::SUCCESS, &[]);
                Ok(Ending::start(context, &self.target, reply).widen())
            }
        }
    }

    /// The length of the range within the target. Checks it against both files.
    fn cut(&self, source: &Metadata, target: &Metadata) -> Result<u64, Status> {
        let DuplicateExtents {
            source_offset,
            target_offset,
            byte_count,
            ..
        } = self.range;
        if source_offset + byte_count > source.size {
            return Err(Status::NOT_SUPPORTED);
        }
        let room = target.size.checked_sub(target_offset);
        let length = byte_count.min(room.ok_or(Status::INVALID_PARAMETER)?);
        let is_overlapping =
            self.source.key == self.target.key && source_offset.abs_diff(target_offset) < length;
        let is_sparse = |file: &Metadata| file.attributes.contains(FileAttributes::SPARSE_FILE);
        if is_overlapping || is_sparse(source) && !is_sparse(target) {
            return Err(Status::NOT_SUPPORTED);
        }
        Ok(length)
    }

    fn clone_range(
        mut self,
        context: &mut Context<'_>,
        length: u64,
    ) -> Result<Progress<super::Step>, Status> {
        if length == 0 {
            return Ok(Progress::Done(self.asked.reply(Status::SUCCESS, &[])));
        }
        let plan = ClonePlan {
            source: self.source.file,
            source_offset: self.range.source_offset,
            target_offset: self.range.target_offset,
            length,
        };
        self.stage = Stage::Clone;
        let file = self.target.file;
        let operation = FileOp::OnOpen(file, Operation::CloneRange(plan));
        Ok(self.wait(context, operation))
    }
}

#[cfg(test)]
mod tests;
