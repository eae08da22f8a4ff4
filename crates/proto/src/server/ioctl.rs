//! IOCTL. \[MS-SMB2\] 3.3.5.15
//!
//! Supported functions: VALIDATE_NEGOTIATE_INFO, network interfaces, server-side copies, shared
//! extents, sparse ranges, trims, valid regions, object ids, compression, reparse points and
//! resilient opens.
//! Other functions fail with the status that Samba uses: FS_DRIVER_REQUIRED on IPC$,
//! INVALID_DEVICE_REQUEST elsewhere.

mod allocated_ranges;
mod compression;
mod copychunk;
mod duplicate_extents;
mod ending;
mod file_regions;
pub(super) mod network_interface;
mod object_id;
mod reparse_point;
pub(super) mod request;
mod resiliency;
mod resume_key;
mod sparse;
mod trim;
pub(super) mod validate_negotiate;
mod zero_data;

use alloc::boxed::Box;

use wire::Status;
use wire::fsctl::CtlCode;
use wire::ioctl::Request;

use crate::effect::Outcome;
use crate::server::config::ShareKind;
use crate::server::context::{Context, Progress};
use request::{check_flags, check_lengths, check_no_open, payload_bytes};

/// The state of a request that waits for the file system.
pub(crate) enum Step {
    AllocatedRanges(allocated_ranges::Step),
    Compression(compression::Step),
    CopyChunk(Box<copychunk::Step>),
    DuplicateExtents(Box<duplicate_extents::Step>),
    Ending(ending::Ending),
    FileRegions(file_regions::Step),
    ReparsePoint(reparse_point::Step),
    Sparse(sparse::Step),
    Trim(Box<trim::Step>),
    ZeroData(zero_data::Step),
}

impl Step {
    pub(crate) fn resume(
        self,
        context: &mut Context<'_>,
        outcome: Outcome,
    ) -> Result<Progress<Step>, Status> {
        match self {
            Self::AllocatedRanges(step) => step.resume(outcome).map(Progress::Done),
            Self::Compression(step) => step.resume(context, outcome).map(Progress::Done),
            Self::CopyChunk(step) => step.resume(context, outcome),
            Self::DuplicateExtents(step) => step.resume(context, outcome),
            Self::FileRegions(step) => step.resume(outcome).map(Progress::Done),
            Self::Ending(ending) => ending.resume(context, outcome).map(Progress::widen),
            Self::ReparsePoint(step) => step.resume(context, outcome).map(Progress::Done),
            Self::Sparse(step) => step.resume(context, outcome).map(Progress::Done),
            Self::Trim(step) => step.resume(context, outcome),
            Self::ZeroData(step) => step.resume(context, outcome),
        }
    }
}

/// Serves or refuses every other function.
pub(crate) fn start(context: &mut Context<'_>, message: &[u8]) -> Result<Progress<Step>, Status> {
    let request = Request::decode(message).map_err(|_| Status::INVALID_PARAMETER)?;
    context.check_charge(payload_bytes(&request)?)?;
    check_lengths(&request, context.max_transact())?;
    check_flags(&request)?;
    let is_disk = context.tree.share.kind == ShareKind::Disk;
    let refusal = match context.tree.share.kind {
        ShareKind::Pipe => Status::FS_DRIVER_REQUIRED,
        ShareKind::Disk => Status::INVALID_DEVICE_REQUEST,
    };
    match request.ctl_code {
        // There is no DFS here, and every client knows that answer.
        CtlCode::DFS_GET_REFERRALS | CtlCode::DFS_GET_REFERRALS_EX => {
            check_no_open(&request)?;
            Err(Status::FS_DRIVER_REQUIRED)
        }
        CtlCode::QUERY_NETWORK_INTERFACE_INFO => {
            network_interface::query(context, &request, refusal).map(Progress::Done)
        }
        CtlCode::PIPE_WAIT => {
            check_no_open(&request)?;
            Err(refusal)
        }
        CtlCode::CREATE_OR_GET_OBJECT_ID if is_disk => {
            object_id::start(context, &request).map(Progress::Done)
        }
        CtlCode::GET_COMPRESSION if is_disk => {
            compression::get(context, &request).map(Progress::widen)
        }
        CtlCode::SET_COMPRESSION if is_disk => {
            compression::set(context, &request).map(Progress::widen)
        }
        CtlCode::GET_REPARSE_POINT if is_disk => {
            reparse_point::get(context, &request).map(Progress::widen)
        }
        CtlCode::SET_REPARSE_POINT if is_disk => {
            reparse_point::set(context, &request).map(Progress::widen)
        }
        CtlCode::DELETE_REPARSE_POINT if is_disk => {
            reparse_point::delete(context, &request).map(Progress::widen)
        }
        CtlCode::SRV_REQUEST_RESUME_KEY if is_disk => {
            resume_key::start(context, &request).map(Progress::Done)
        }
        CtlCode::LMR_REQUEST_RESILIENCY if is_disk => {
            resiliency::start(context, &request).map(Progress::Done)
        }
        CtlCode::SRV_COPYCHUNK | CtlCode::SRV_COPYCHUNK_WRITE if is_disk => {
            copychunk::start(context, &request)
        }
        CtlCode::DUPLICATE_EXTENTS_TO_FILE | CtlCode::DUPLICATE_EXTENTS_TO_FILE_EX if is_disk => {
            duplicate_extents::start(context, &request)
        }
        CtlCode::QUERY_FILE_REGIONS if is_disk => {
            file_regions::start(context, &request).map(Progress::widen)
        }
        CtlCode::SET_SPARSE if is_disk => sparse::start(context, &request).map(Progress::widen),
        CtlCode::FILE_LEVEL_TRIM if is_disk => trim::start(context, &request),
        CtlCode::SET_ZERO_DATA if is_disk => zero_data::start(context, &request),
        CtlCode::QUERY_ALLOCATED_RANGES if is_disk => {
            allocated_ranges::start(context, &request).map(Progress::widen)
        }
        _ => {
            context.open(request.file_id)?;
            Err(refusal)
        }
    }
}

impl From<allocated_ranges::Step> for Step {
    fn from(step: allocated_ranges::Step) -> Self {
        Self::AllocatedRanges(step)
    }
}

impl From<compression::Step> for Step {
    fn from(step: compression::Step) -> Self {
        Self::Compression(step)
    }
}

impl From<file_regions::Step> for Step {
    fn from(step: file_regions::Step) -> Self {
        Self::FileRegions(step)
    }
}

impl From<reparse_point::Step> for Step {
    fn from(step: reparse_point::Step) -> Self {
        Self::ReparsePoint(step)
    }
}

impl From<sparse::Step> for Step {
    fn from(step: sparse::Step) -> Self {
        Self::Sparse(step)
    }
}

impl From<ending::Ending> for Step {
    fn from(ending: ending::Ending) -> Self {
        Self::Ending(ending)
    }
}
