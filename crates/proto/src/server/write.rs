//! WRITE. \[MS-SMB2\] 3.3.5.13

use alloc::sync::Arc;
use alloc::vec::Vec;

use wire::Status;
use wire::access::AccessMask;
use wire::smbd::BufferDescriptorV1;
use wire::write::{Request, Response, WriteFlags};

use crate::effect::{Effect, Outcome, WriteData, WritePlan};
use crate::file::{BasicChanges, FileOp, Operation};
use crate::server::context::{Context, Progress, Reply};
use crate::server::fsa::byte_range::RangeAccess;
use crate::server::fsa::{MAX_FILE_SIZE, MAX_OFFSET};
use crate::server::open::{Need, Open, malformed};
use crate::server::rdma_buffers;
use crate::violation::Violation;

/// Rights that let an open write, each by itself.
///
/// \[MS-SMB2\] 3.3.5.13 asks for FILE_APPEND_DATA to write past the end and for FILE_WRITE_DATA to
/// write before it. Windows takes either for both, by the product behavior note of that section
/// (358). smbtorture smb2.rw.append proves it: with FILE_APPEND_DATA alone, a WRITE at offset 0
/// overwrites, on Windows as on Samba. Only the local function NtWriteFile ignores the offset of
/// such an open; its server does not call that. Well-known clients grow files that they opened with
/// FILE_WRITE_DATA alone.
pub(crate) const WRITES: AccessMask =
    AccessMask(AccessMask::FILE_WRITE_DATA.0 | AccessMask::FILE_APPEND_DATA.0);

/// The state of a request that waits for the file system.
pub(crate) enum Step {
    /// The end of the file is sought: a lock may be in the way there.
    FindingEnd {
        open: Arc<Open>,
        data: WriteData,
        through: bool,
    },
    /// The time of the last write is being read, because the open preserves it.
    Noting {
        open: Arc<Open>,
        offset: Option<u64>,
        data: WriteData,
        through: bool,
    },
    /// They are being written.
    Writing {
        /// To which open.
        open: Arc<Open>,
    },
    /// The time of the last write that the client has set is being restored.
    Restoring {
        /// Bytes that were written.
        count: u32,
    },
}

/// Starts on a request.
pub(crate) fn start(context: &mut Context<'_>, message: &[u8]) -> Result<Progress<Step>, Status> {
    let request = Request::decode(message).map_err(malformed)?;
    let data = match memory(context, &request)? {
        Some(memory) => WriteData::Remote(memory),
        None => inline(context, &request),
    };
    let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
    let open = context.open(request.file_id)?;
    check_request(context, &request, length)?;
    // The rights come before the offset, because the meaning of the offset depends on them.
    open.authorize(Need::Right(WRITES))?;
    let offset = place(&open, request.offset, length.into())?;
    if open.is_directory {
        return Err(Status::INVALID_DEVICE_REQUEST);
    }
    if length == 0 {
        return Ok(done(0));
    }
    let through = open.writes_through(request.flags.contains(WriteFlags::WRITE_THROUGH));
    match offset {
        Some(offset) => open.check_locks(RangeAccess::Write, offset, length.into())?,
        None if !open.locks.is_empty() => {
            let data = kept(data, &request);
            return Ok(find_end(context, open, data, through));
        }
        None => {}
    }
    if open.kept_write_time().is_some() {
        let data = kept(data, &request);
        return Ok(note_write_time(context, open, offset, data, through));
    }
    Ok(write(context, open, offset, data, through))
}

/// The client's memory that holds the data: then none are in the message, and RemainingBytes says
/// how many there are. \[MS-SMB2\] 3.3.5.13
fn memory(
    context: &mut Context<'_>,
    request: &Request<'_>,
) -> Result<Option<Vec<BufferDescriptorV1>>, Status> {
    let (channel, length) = (request.channel, request.remaining_bytes);
    let memory = rdma_buffers::memory(context, channel, request.channel_info, length)?;
    let is_inline = !request.data.is_empty() || request.data_offset != 0;
    if memory.is_some() && (is_inline || length == 0) {
        return Err(Status::INVALID_PARAMETER);
    }
    Ok(memory)
}

fn write(
    context: &mut Context<'_>,
    open: Arc<Open>,
    offset: Option<u64>,
    data: WriteData,
    through: bool,
) -> Progress<Step> {
    let op = context.op();
    context.effects.push(Effect::Write(WritePlan {
        op,
        file: open.file,
        offset,
        data,
        through,
    }));
    let step = Step::Writing { open };
    Progress::Wait(op, step)
}

/// Reads the time of the last write before a write that preserves it: another open may have written
/// since the client of this open set it. smbtorture smb2.timestamps.modern_write_time_update-1
fn note_write_time(
    context: &mut Context<'_>,
    open: Arc<Open>,
    offset: Option<u64>,
    data: WriteData,
    through: bool,
) -> Progress<Step> {
    let operation = FileOp::OnOpen(open.file, Operation::Stat);
    let step = Step::Noting {
        open,
        offset,
        data,
        through,
    };
    context.wait(operation, step)
}

/// Where something is locked, whether it may be appended is known once the end is.
fn find_end(
    context: &mut Context<'_>,
    open: Arc<Open>,
    data: WriteData,
    through: bool,
) -> Progress<Step> {
    let operation = FileOp::OnOpen(open.file, Operation::Stat);
    let step = Step::FindingEnd {
        open,
        data,
        through,
    };
    context.wait(operation, step)
}

fn check_request(context: &Context<'_>, request: &Request<'_>, length: u32) -> Result<(), Status> {
    context.check_charge(length)?;
    if length > context.max_write() {
        return Err(Status::INVALID_PARAMETER);
    }
    // [MS-SMB2] 3.3.5.13: the data do not overlap the fixed part.
    let is_behind_head = request.data_offset as usize >= wire::write::HEAD_LEN;
    if !request.data.is_empty() && !is_behind_head {
        return Err(Status::INVALID_PARAMETER);
    }
    Ok(())
}

/// Where to write: at the end for -1, but of an open that may only append. smbtorture
/// smb2.rw.invalid wants INVALID_PARAMETER for -1 of an open with all rights, and sets the limits.
fn place(open: &Open, offset: u64, length: u64) -> Result<Option<u64>, Status> {
    let may_write = open.granted.contains(AccessMask::FILE_WRITE_DATA);
    if offset == u64::MAX && !may_write {
        return Ok(None);
    }
    let limit = if length == 0 {
        MAX_OFFSET
    } else {
        MAX_FILE_SIZE
    };
    let end = offset.checked_add(length);
    if end.is_none_or(|end| end > limit) {
        return Err(Status::INVALID_PARAMETER);
    }
    Ok(Some(offset))
}

/// The data: a range of the inbound frame, or a copy if the frame is no longer available.
fn inline(context: &Context<'_>, request: &Request<'_>) -> WriteData {
    match context.frame_offset {
        Some(start) => {
            let range = request.data_range();
            WriteData::Inbound(start + range.start..start + range.end)
        }
        None => WriteData::Owned(request.data.to_vec()),
    }
}

/// The bytes of a request that waits before they are written.
fn kept(data: WriteData, request: &Request<'_>) -> WriteData {
    match data {
        WriteData::Inbound(_) => WriteData::Owned(request.data.to_vec()),
        data => data,
    }
}

impl Step {
    pub(crate) fn resume(
        self,
        context: &mut Context<'_>,
        outcome: Outcome,
    ) -> Result<Progress<Step>, Status> {
        if let Self::Writing { open, .. } = &self {
            // Also after an error: a part may have been written.
            context.data_changed(open);
        }
        match (self, outcome) {
            // The bytes are written, even if the file system did not restore the time.
            (Self::Restoring { count }, _) => Ok(done(count)),
            (_, Outcome::Failed(status)) => Err(status),
            (
                Self::FindingEnd {
                    open,
                    data,
                    through,
                },
                outcome,
            ) => {
                let metadata = outcome.expect_file()?.expect_metadata();
                open.check_locks(RangeAccess::Write, metadata.size, data.len() as u64)?;
                Ok(write(context, open, None, data, through))
            }
            (
                Self::Noting {
                    open,
                    offset,
                    data,
                    through,
                },
                outcome,
            ) => {
                let metadata = outcome.expect_file()?.expect_metadata();
                open.keep_write_time(Some(metadata.written));
                Ok(write(context, open, offset, data, through))
            }
            // Nothing is written, and no answer is sent.
            (Self::Writing { .. }, Outcome::RemoteFailed) => {
                Ok(Progress::End(Violation::RemoteMemory))
            }
            (Self::Writing { open }, Outcome::Written(count)) => Ok(written(context, &open, count)),
            (Self::Writing { .. }, other) => {
                panic!("a write expects Written, the driver answered {other:?}")
            }
        }
    }
}

/// A WRITE does not move the file position, as with Windows and Samba; smb-rs checks this.
fn written(context: &mut Context<'_>, open: &Open, count: u32) -> Progress<Step> {
    *context.transferred = count;
    context.count_written(open, count.into());
    match report(context, open) {
        None => done(count),
        Some(restore) => {
            let step = Step::Restoring { count };
            context.wait(restore, step)
        }
    }
}

/// Reports a write to the watches of the directory. Returns the operation that restores the write
/// time if the client has set it before, as a client that copies a file does.
pub(crate) fn report(context: &mut Context<'_>, open: &Open) -> Option<FileOp> {
    context.report_write(open);
    let written = open.kept_write_time()?;
    let changes = BasicChanges {
        written: Some(written),
        ..BasicChanges::default()
    };
    let file = open.file;
    Some(FileOp::OnOpen(file, Operation::SetBasic(changes)))
}

fn done(count: u32) -> Progress<Step> {
    Progress::Done(Reply::message(|out| Response { count }.encode(out)))
}

#[cfg(test)]
mod tests;
