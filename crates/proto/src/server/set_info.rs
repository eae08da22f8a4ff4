//! SET_INFO. \[MS-SMB2\] 3.3.5.21

mod basic;
mod disposition;
mod ea;
mod quota;
mod rename;
mod security;
mod stream_name;

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use wire::access::AccessMask;
use wire::change_notify::CompletionFilter;
use wire::fscc::{
    FileAllocationInformation, FileEndOfFileInformation, FileInfoClass, FileModeInformation,
    FilePositionInformation, InfoType,
};
use wire::query_info::SecurityInformation;
use wire::set_info::{Request, Response};
use wire::{DecodeError, Status};

use crate::effect::Outcome;
use crate::file::{BasicChanges, FileOp, Operation};
use crate::server::context::{Context, Progress, Reply};
use crate::server::fsa::{MAX_FILE_SIZE, MAX_OFFSET};
use crate::server::open::{Need, Open, SETTABLE_MODE, malformed};

/// The state of a request that waits for the file system.
pub(crate) enum Step {
    /// The security descriptor is being changed.
    Security(Arc<Open>),
    /// The write time is being restored. A failure does not matter.
    Restoring,
    /// The time of the last write is being read, before this operation changes the size.
    Noting(Arc<Open>, Box<Operation>),
    /// The size is being changed; then the time that the client has set is restored.
    Resizing(Arc<Open>),
    Basic(basic::Step),
    Disposition(disposition::Step),
    Ea(ea::Step),
    /// The limits of accounts are being set.
    Quota,
    Rename(Box<rename::Step>),
    StreamName(Box<stream_name::Step>),
}

/// Starts on a request.
pub(crate) fn start(context: &mut Context<'_>, message: &[u8]) -> Result<Progress<Step>, Status> {
    let request = Request::decode(message).map_err(malformed)?;
    let length = u32::try_from(request.buffer.len()).unwrap_or(u32::MAX);
    context.check_charge(length)?;
    let open = context.open(request.file_id)?;
    context.audit_set_info(&open, &request);
    if length > context.max_transact() {
        return Err(Status::INVALID_PARAMETER);
    }
    match request.info_type {
        InfoType::FILE => {
            let class = FileInfoClass(request.file_info_class);
            set_file(context, open, class, request.buffer)
        }
        InfoType::SECURITY => {
            let parts = SecurityInformation(request.additional_information);
            security::start(context, open, parts, request.buffer)
        }
        InfoType::QUOTA => quota::start(context, &open, request.buffer),
        // Labels and default limits of quotas are not ours to set.
        InfoType::FILESYSTEM => Err(Status::NOT_SUPPORTED),
        _ => Err(Status::INVALID_PARAMETER),
    }
}

fn set_file(
    context: &mut Context<'_>,
    open: Arc<Open>,
    class: FileInfoClass,
    buffer: &[u8],
) -> Result<Progress<Step>, Status> {
    open.authorize(needs(class)?)?;
    if buffer.len() < class.fixed_len().unwrap_or(0) {
        return Err(Status::INFO_LENGTH_MISMATCH);
    }
    match class {
        FileInfoClass::BASIC => basic::start(context, open, buffer),
        FileInfoClass::RENAME => rename::start_rename(context, open, buffer),
        FileInfoClass::LINK => rename::start_link(context, open, buffer),
        FileInfoClass::LINK_EX => rename::start_link_ex(context, open, buffer),
        FileInfoClass::DISPOSITION => disposition::start(context, open, buffer),
        FileInfoClass::DISPOSITION_EX => disposition::start_ex(context, open, buffer),
        FileInfoClass::RENAME_EX => rename::start_rename_ex(context, open, buffer),
        FileInfoClass::POSITION => set_position(&open, buffer),
        FileInfoClass::MODE => set_mode(&open, buffer),
        FileInfoClass::ALLOCATION => set_allocation(context, open, buffer),
        FileInfoClass::END_OF_FILE => set_end_of_file(context, open, buffer),
        FileInfoClass::FULL_EA => ea::start(context, open, buffer),
        // [MS-FSA] 2.1.5.15.16: old content of the disk must not appear. No account has the
        // privilege.
        FileInfoClass::VALID_DATA_LENGTH => Err(Status::PRIVILEGE_NOT_HELD),
        // [MS-FSA] 2.1.5.15.13: nor that to restore files. There are no 8.3 names either.
        FileInfoClass::SHORT_NAME => Err(Status::PRIVILEGE_NOT_HELD),
        _ => Err(Status::INVALID_INFO_CLASS),
    }
}

/// The rights that a class needs; an error if the class cannot be set. \[MS-SMB2\] 3.3.5.21.1
fn needs(class: FileInfoClass) -> Result<Need, Status> {
    match class {
        FileInfoClass::BASIC => Ok(Need::Right(AccessMask::FILE_WRITE_ATTRIBUTES)),
        FileInfoClass::RENAME
        | FileInfoClass::RENAME_EX
        | FileInfoClass::DISPOSITION
        | FileInfoClass::DISPOSITION_EX => Ok(Need::Right(AccessMask::DELETE)),
        // cifs.ko links through an open that may read attributes, no more.
        FileInfoClass::LINK | FileInfoClass::LINK_EX => Ok(Need::Change),
        FileInfoClass::ALLOCATION
        | FileInfoClass::END_OF_FILE
        | FileInfoClass::VALID_DATA_LENGTH => Ok(Need::Right(AccessMask::FILE_WRITE_DATA)),
        FileInfoClass::FULL_EA => Ok(Need::Right(AccessMask::FILE_WRITE_EA)),
        FileInfoClass::SHORT_NAME => Ok(Need::Right(AccessMask::DELETE)),
        FileInfoClass::POSITION | FileInfoClass::MODE => Ok(Need::Nothing),
        _ => Err(Status::INVALID_INFO_CLASS),
    }
}

/// The position is kept, and means nothing to a READ. \[MS-FSA\] 2.1.5.15.10
fn set_position(open: &Open, buffer: &[u8]) -> Result<Progress<Step>, Status> {
    let information = FilePositionInformation::decode(buffer).map_err(malformed)?;
    let position = information.current_byte_offset;
    if position > MAX_OFFSET {
        return Err(Status::INVALID_PARAMETER);
    }
    open.position.store(position, Ordering::Relaxed);
    Ok(done())
}

/// Samba takes no more than these two; smbtorture smb2.setinfo.
fn set_mode(open: &Open, buffer: &[u8]) -> Result<Progress<Step>, Status> {
    let FileModeInformation { mode } = FileModeInformation::decode(buffer).map_err(malformed)?;
    if !SETTABLE_MODE.contains(mode) {
        return Err(Status::INVALID_PARAMETER);
    }
    open.mode.store(mode.0, Ordering::Relaxed);
    Ok(done())
}

/// \[MS-FSA\] 2.1.5.15.1: less than the size cuts the file.
fn set_allocation(
    context: &mut Context<'_>,
    open: Arc<Open>,
    buffer: &[u8],
) -> Result<Progress<Step>, Status> {
    let information = FileAllocationInformation::decode(buffer);
    let length = size(&open, information.map(|it| it.allocation_size))?;
    Ok(resize(context, open, Operation::SetAllocation { length }))
}

/// \[MS-FSA\] 2.1.5.15.4
fn set_end_of_file(
    context: &mut Context<'_>,
    open: Arc<Open>,
    buffer: &[u8],
) -> Result<Progress<Step>, Status> {
    let information = FileEndOfFileInformation::decode(buffer);
    let length = size(&open, information.map(|it| it.end_of_file))?;
    Ok(resize(context, open, Operation::SetEndOfFile { length }))
}

/// Changes the size. An open that preserves the time of the last write preserves the present one:
/// another open may have written since its client set it. smbtorture
/// smb2.timestamps.modern_write_time_update-2
fn resize(context: &mut Context<'_>, open: Arc<Open>, operation: Operation) -> Progress<Step> {
    let file = open.file;
    if open.kept_write_time().is_some() {
        let step = Step::Noting(open, Box::new(operation));
        return wait(context, FileOp::OnOpen(file, Operation::Stat), step);
    }
    let operation = FileOp::OnOpen(file, operation);
    wait(context, operation, Step::Resizing(open))
}

/// A size that a file can have. A directory has none.
fn size(open: &Open, size: Result<u64, DecodeError>) -> Result<u64, Status> {
    let size = size.map_err(malformed)?;
    if open.is_directory || size > MAX_FILE_SIZE {
        return Err(Status::INVALID_PARAMETER);
    }
    Ok(size)
}

fn wait(context: &mut Context<'_>, operation: FileOp, step: Step) -> Progress<Step> {
    context.wait(operation, step)
}

fn done() -> Progress<Step> {
    Progress::Done(Reply::message(|out| Response.encode(out)))
}

impl Step {
    pub(crate) fn resume(
        self,
        context: &mut Context<'_>,
        outcome: Outcome,
    ) -> Result<Progress<Step>, Status> {
        if let Self::Resizing(open) = &self {
            context.data_changed(open);
        }
        match self {
            // The size is set, even if the file system did not restore the time.
            Self::Restoring => Ok(done()),
            Self::Security(open) => {
                // A change of the mode has other metadata as its outcome.
                drop(outcome.expect_file()?);
                context.report_change(&open, CompletionFilter::SECURITY);
                Ok(done())
            }
            Self::Noting(open, operation) => {
                let metadata = outcome.expect_file()?.expect_metadata();
                open.keep_write_time(Some(metadata.written));
                let operation = FileOp::OnOpen(open.file, *operation);
                Ok(wait(context, operation, Self::Resizing(open)))
            }
            Self::Resizing(open) => {
                outcome.expect_file()?.expect_done();
                Ok(restore_write_time(context, &open))
            }
            Self::Basic(step) => step.resume(context, &outcome.expect_file()?.expect_metadata()),
            Self::Disposition(step) => step.resume(context, outcome),
            Self::Quota => {
                outcome.expect_file()?.expect_done();
                Ok(done())
            }
            Self::Ea(step) => {
                outcome.expect_file()?.expect_metadata();
                Ok(step.resume(context))
            }
            Self::Rename(step) => step.resume(context, outcome),
            Self::StreamName(step) => step.resume(context, outcome),
        }
    }
}

/// \[MS-FSA\] 2.1.4.17: a client that set the last write time keeps it.
fn restore_write_time(context: &mut Context<'_>, open: &Open) -> Progress<Step> {
    let seen = CompletionFilter::SIZE | CompletionFilter::LAST_WRITE;
    context.report_change(open, seen);
    let Some(written) = open.kept_write_time() else {
        return done();
    };
    let changes = BasicChanges {
        written: Some(written),
        ..BasicChanges::default()
    };
    let file = open.file;
    wait(
        context,
        FileOp::OnOpen(file, Operation::SetBasic(changes)),
        Step::Restoring,
    )
}

#[cfg(test)]
mod tests;
