//! LMR_REQUEST_RESILIENCY: makes an open resilient, so that it outlives a lost session without
//! caching rights. \[MS-SMB2\] 3.3.5.15.9

use core::time::Duration;

use wire::Status;
use wire::dialect::Dialect;
use wire::fsctl::ResiliencyRequest;
use wire::ioctl::Request;

use super::request::reply;
use crate::server::context::{Context, Reply};
use crate::server::durability::Durability;
use crate::server::open::malformed;

/// Time for which the server preserves a resilient open if the client names none: as Windows.
/// \[MS-SMB2\] 3.3.5.15.9
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(120);

/// Answers at once.
pub(super) fn start(context: &mut Context<'_>, request: &Request<'_>) -> Result<Reply, Status> {
    let open = context.open(request.file_id)?;
    // A guest cannot prove later that the open is its own.
    let is_possible = context.dialect > Dialect::SMB_2_0_2
        && context.tree.share.durable_handles
        && !open.is_directory
        && context.session.state.lock().is_named();
    let max = context.config.limits.durable_timeout_max;
    if !is_possible || max.is_zero() {
        return Err(Status::INVALID_DEVICE_REQUEST);
    }
    let ResiliencyRequest { timeout_ms } =
        ResiliencyRequest::decode(request.input).map_err(malformed)?;
    let timeout = match Duration::from_millis(timeout_ms.into()) {
        Duration::ZERO => DEFAULT_TIMEOUT.min(max),
        timeout if timeout > max => return Err(Status::INVALID_PARAMETER),
        timeout => timeout,
    };
    open.state.lock().durability = Durability::Resilient { timeout };
    Ok(reply(request, &[]))
}
