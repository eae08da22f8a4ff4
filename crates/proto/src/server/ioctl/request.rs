//! The checks and the answer that the functions of IOCTL share. \[MS-SMB2\] 3.3.5.15

use wire::fsctl::CtlCode;
use wire::ioctl::{IoctlFlags, Request, Response};
use wire::{FileId, Status};

use crate::server::context::Reply;

/// The fields of a request that its response repeats.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    ctl_code: CtlCode,
    file_id: FileId,
}

impl Asked {
    pub(super) fn by(request: &Request<'_>) -> Self {
        Self {
            ctl_code: request.ctl_code,
            file_id: request.file_id,
        }
    }

    /// An answer with output: even of an error, where the function has one for it.
    pub(super) fn reply(self, status: Status, output: &[u8]) -> Reply {
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

pub(in crate::server) fn reply(request: &Request<'_>, output: &[u8]) -> Reply {
    Asked::by(request).reply(Status::SUCCESS, output)
}

/// The length in bytes that the credits of the request must pay for. \[MS-SMB2\] 3.3.5.15
pub(in crate::server) fn payload_bytes(request: &Request<'_>) -> Result<u32, Status> {
    let inbound = request.input.len() + request.output.len();
    let inbound = u32::try_from(inbound).map_err(|_| Status::INVALID_PARAMETER)?;
    let outbound = request
        .max_input_response
        .checked_add(request.max_output_response)
        .ok_or(Status::INVALID_PARAMETER)?;
    Ok(inbound.max(outbound))
}

/// Checks that neither the input nor a maximum of the output exceeds Connection.MaxTransactSize.
/// \[MS-SMB2\] 3.3.5.15
pub(in crate::server) fn check_lengths(
    request: &Request<'_>,
    max_transact: u32,
) -> Result<(), Status> {
    let is_long = request.input.len() > max_transact as usize
        || request.max_input_response > max_transact
        || request.max_output_response > max_transact;
    match is_long {
        true => Err(Status::INVALID_PARAMETER),
        false => Ok(()),
    }
}

pub(in crate::server) fn check_flags(request: &Request<'_>) -> Result<(), Status> {
    if request.flags == IoctlFlags::IS_FSCTL {
        Ok(())
    } else {
        Err(Status::NOT_SUPPORTED)
    }
}

/// \[MS-SMB2\] 3.3.5.15: these functions take no open.
pub(in crate::server) fn check_no_open(request: &Request<'_>) -> Result<(), Status> {
    if request.file_id == FileId::RELATED {
        Ok(())
    } else {
        Err(Status::INVALID_PARAMETER)
    }
}
