//! IOCTL. \[MS-SMB2\] 3.3.5.15
//!
//! Served are VALIDATE_NEGOTIATE_INFO, the network interfaces, copies on the server, holes in
//! files, the object id, the compression of a file, which has none, and that it is no reparse
//! point. Everything else is refused with the status that Samba gives for what it does not do:
//! FS_DRIVER_REQUIRED on IPC$, INVALID_DEVICE_REQUEST elsewhere.

mod allocated_ranges;
mod compression;
mod copychunk;
mod ending;
mod network_interface;
mod object_id;
mod reparse_point;
mod resume_key;
mod sparse;
mod zero_data;

use alloc::boxed::Box;

use wire::fsctl::{CtlCode, ValidateNegotiateInfoRequest, ValidateNegotiateInfoResponse};
use wire::ioctl::{IoctlFlags, Request, Response};
use wire::{FileId, Status};

use crate::effect::Outcome;
use crate::server::config::ShareKind;
use crate::server::connection::Connection;
use crate::server::context::{Context, Progress, Reply};
use crate::server::negotiate::{Negotiated, best_dialect};
use crate::server::task::Flow;
use crate::violation::Violation;

/// Bytes of a VALIDATE_NEGOTIATE_INFO response. \[MS-SMB2\] 2.2.32.6
const VALIDATE_NEGOTIATE_LEN: u32 = 24;

/// What goes on once the world has answered.
pub(crate) enum Step {
    AllocatedRanges(allocated_ranges::Step),
    CopyChunk(Box<copychunk::Step>),
    Ending(ending::Ending),
    ReparsePoint,
    Sparse(sparse::Step),
    ZeroData(zero_data::Step),
}

/// What of a request its answer repeats.
#[derive(Clone, Copy, Debug)]
struct Asked {
    ctl_code: CtlCode,
    file_id: FileId,
}

impl Asked {
    fn by(request: &Request<'_>) -> Self {
        Self {
            ctl_code: request.ctl_code,
            file_id: request.file_id,
        }
    }

    /// An answer with output: even of an error, where the function has one for it.
    fn reply(self, status: Status, output: &[u8]) -> Reply {
        let response = Response {
            ctl_code: self.ctl_code,
            file_id: self.file_id,
            flags: IoctlFlags::NONE,
            input: &[],
            output,
        };
        Reply::with_status(status, |body| response.encode(body))
    }
}

impl Step {
    pub(crate) fn resume(
        self,
        context: &mut Context<'_>,
        outcome: Outcome,
    ) -> Result<Progress, Status> {
        match self {
            Self::AllocatedRanges(step) => step.resume(outcome),
            Self::CopyChunk(step) => step.resume(context, outcome),
            Self::Ending(ending) => ending.resume(context, outcome),
            Self::ReparsePoint => reparse_point::resume(outcome),
            Self::Sparse(step) => step.resume(context, outcome),
            Self::ZeroData(step) => step.resume(context, outcome),
        }
    }
}

/// Whether the request is about the connection and needs no tree: Samba serves it even without a
/// session, so that a client finds out about a downgrade as early as it likes.
pub(super) fn is_about_connection(message: &[u8]) -> bool {
    Request::decode(message)
        .is_ok_and(|request| request.ctl_code == CtlCode::VALIDATE_NEGOTIATE_INFO)
}

impl Connection {
    /// Serves VALIDATE_NEGOTIATE_INFO. \[MS-SMB2\] 3.3.5.15.12
    pub(super) fn connection_ioctl(&self, message: &[u8]) -> Result<Flow, Status> {
        let request = Request::decode(message).map_err(|_| Status::INVALID_PARAMETER)?;
        check_flags(&request)?;
        check_no_open(&request)?;
        let seen = ValidateNegotiateInfoRequest::decode(request.input)
            .map_err(|_| Status::INVALID_PARAMETER)?;
        if request.max_output_response < VALIDATE_NEGOTIATE_LEN {
            return Err(Status::BUFFER_TOO_SMALL);
        }
        let negotiated = self.negotiated.as_ref().expect("NEGOTIATE came first");
        let dialect = best_dialect(&self.server.config, &seen.dialects);
        if dialect != Some(negotiated.dialect) || !is_what_came(&seen, negotiated) {
            return Ok(Flow::End(Violation::NegotiateTampered));
        }
        let answer = ValidateNegotiateInfoResponse {
            capabilities: negotiated.capabilities,
            guid: self.server.config.guid,
            security_mode: negotiated.security_mode,
            dialect: negotiated.dialect,
        };
        Ok(Flow::Done(reply(&request, &answer.encode())))
    }
}

/// Serves or refuses every other function.
pub(crate) fn start(context: &mut Context<'_>, message: &[u8]) -> Result<Progress, Status> {
    let request = Request::decode(message).map_err(|_| Status::INVALID_PARAMETER)?;
    context.check_charge(payload_bytes(&request)?)?;
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
            network_interface::query(context, &request, refusal)
        }
        CtlCode::PIPE_WAIT => {
            check_no_open(&request)?;
            Err(refusal)
        }
        CtlCode::CREATE_OR_GET_OBJECT_ID if is_disk => object_id::start(context, &request),
        CtlCode::GET_COMPRESSION if is_disk => compression::get(context, &request),
        CtlCode::SET_COMPRESSION if is_disk => compression::set(context, &request),
        CtlCode::GET_REPARSE_POINT if is_disk => reparse_point::get(context, &request),
        CtlCode::SRV_REQUEST_RESUME_KEY if is_disk => resume_key::start(context, &request),
        CtlCode::SRV_COPYCHUNK | CtlCode::SRV_COPYCHUNK_WRITE if is_disk => {
            copychunk::start(context, &request)
        }
        CtlCode::SET_SPARSE if is_disk => sparse::start(context, &request),
        CtlCode::SET_ZERO_DATA if is_disk => zero_data::start(context, &request),
        CtlCode::QUERY_ALLOCATED_RANGES if is_disk => allocated_ranges::start(context, &request),
        _ => {
            context.open(request.file_id)?;
            Err(refusal)
        }
    }
}

pub(super) fn reply(request: &Request<'_>, output: &[u8]) -> Reply {
    Asked::by(request).reply(Status::SUCCESS, output)
}

/// What the credits of the request must pay for. \[MS-SMB2\] 3.3.5.15
pub(super) fn payload_bytes(request: &Request<'_>) -> Result<u32, Status> {
    let inbound = request.input.len() + request.output.len();
    let inbound = u32::try_from(inbound).map_err(|_| Status::INVALID_PARAMETER)?;
    let outbound = request
        .max_input_response
        .checked_add(request.max_output_response)
        .ok_or(Status::INVALID_PARAMETER)?;
    Ok(inbound.max(outbound))
}

pub(super) fn check_flags(request: &Request<'_>) -> Result<(), Status> {
    if request.flags == IoctlFlags::IS_FSCTL {
        Ok(())
    } else {
        Err(Status::NOT_SUPPORTED)
    }
}

/// \[MS-SMB2\] 3.3.5.15: these functions take no open.
pub(super) fn check_no_open(request: &Request<'_>) -> Result<(), Status> {
    if request.file_id == FileId::RELATED {
        Ok(())
    } else {
        Err(Status::INVALID_PARAMETER)
    }
}

fn is_what_came(seen: &ValidateNegotiateInfoRequest, negotiated: &Negotiated) -> bool {
    seen.guid == negotiated.client_guid
        && seen.capabilities == negotiated.client_capabilities
        && seen.security_mode == negotiated.client_security_mode
}
