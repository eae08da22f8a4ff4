//! IOCTL on IPC$. \[MS-SMB2\] 3.3.5.15

use wire::Status;
use wire::fsctl::{CtlCode, PipePeek, PipeWait};
use wire::ioctl::Request;

use super::transfer::Step;
use super::{open, transfer};
use crate::server::context::{Context, Progress};
use crate::server::ioctl::network_interface;
use crate::server::ioctl::request::{check_flags, check_no_open, payload_bytes, reply};

/// FILE_PIPE_CONNECTED_STATE: both ends of the pipe are open. \[MS-FSCC\] 2.4.38
pub(super) const CONNECTED: u32 = 3;

/// Serves the functions of pipes, and those that every tree has.
pub(super) fn start(context: &mut Context<'_>, message: &[u8]) -> Result<Progress<Step>, Status> {
    let request = Request::decode(message).map_err(|_| Status::INVALID_PARAMETER)?;
    context.check_charge(payload_bytes(&request)?)?;
    check_flags(&request)?;
    match request.ctl_code {
        CtlCode::DFS_GET_REFERRALS | CtlCode::DFS_GET_REFERRALS_EX => {
            check_no_open(&request)?;
            Err(Status::FS_DRIVER_REQUIRED)
        }
        CtlCode::QUERY_NETWORK_INTERFACE_INFO => {
            let refusal = Status::FS_DRIVER_REQUIRED;
            network_interface::query(context, &request, refusal).map(Progress::Done)
        }
        CtlCode::PIPE_TRANSCEIVE => transfer::transceive(context, &request),
        CtlCode::PIPE_WAIT => wait(&request),
        CtlCode::PIPE_PEEK => peek(context, &request),
        _ => {
            context.pipe(request.file_id)?;
            Err(Status::FS_DRIVER_REQUIRED)
        }
    }
}

/// PIPE_WAIT: an existing pipe can be opened at once. \[MS-SMB2\] 3.3.5.15.9
fn wait(request: &Request<'_>) -> Result<Progress<Step>, Status> {
    check_no_open(request)?;
    let asked = PipeWait::decode(request.input).map_err(|_| Status::INVALID_PARAMETER)?;
    let name = asked.name.decode().ok_or(Status::INVALID_PARAMETER)?;
    open::find(&name).ok_or(Status::OBJECT_NAME_NOT_FOUND)?;
    Ok(Progress::Done(reply(request, &[])))
}

/// \[MS-SMB2\] 3.3.5.15.1, \[MS-FSCC\] 2.3.45. Samba does not know it, Windows does.
fn peek(context: &mut Context<'_>, request: &Request<'_>) -> Result<Progress<Step>, Status> {
    let pipe = context.pipe(request.file_id)?;
    let capacity = (request.max_output_response as usize).checked_sub(PipePeek::HEAD_LEN);
    let capacity = capacity.ok_or(Status::INVALID_PARAMETER)?;
    let state = pipe.state.lock();
    if let Some(status) = state.is_over() {
        return Err(status);
    }
    let (first, count) = state.peek();
    let number = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
    let output = PipePeek {
        state: CONNECTED,
        read_data_available: number(state.unread_len()),
        number_of_messages: number(count),
        message_length: number(first.len()),
        data: &first[..first.len().min(capacity)],
    };
    Ok(Progress::Done(reply(request, &output.encode())))
}
