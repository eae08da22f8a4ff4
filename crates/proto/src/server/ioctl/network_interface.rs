//! QUERY_NETWORK_INTERFACE_INFO: where else the server can be reached. \[MS-SMB2\] 3.3.5.15.11

use wire::Status;
use wire::dialect::Dialect;
use wire::fsctl::NetworkInterface;
use wire::ioctl::Request;

use super::request::{check_no_open, reply};
use crate::server::context::{Context, Reply};

/// Lists the interfaces, or gives `refusal` where a session has one connection and no more.
pub(in crate::server) fn query(
    context: &Context<'_>,
    request: &Request<'_>,
    refusal: Status,
) -> Result<Reply, Status> {
    check_no_open(request)?;
    if context.dialect < Dialect::SMB_3_0 || !context.config.multichannel {
        return Err(refusal);
    }
    if !request.input.is_empty() {
        return Err(Status::INVALID_PARAMETER);
    }
    let interfaces = context.server.interfaces.lock().clone();
    let output = NetworkInterface::encode_list(&interfaces);
    if output.len() as u64 > u64::from(request.max_output_response) {
        return Err(Status::BUFFER_TOO_SMALL);
    }
    Ok(reply(request, &output))
}
