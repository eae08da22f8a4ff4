//! OPLOCK_BREAK: a client acknowledges that it has given up an oplock or rights of a lease.
//! \[MS-SMB2\] 3.3.4.6, 3.3.5.22

use core::convert::Infallible;

use wire::Status;
use wire::access::OplockLevel;
use wire::oplock_break::{LeaseBreak, OplockBreak, Request, Response};

use crate::server::context::{Context, Progress, Reply};
use crate::server::fsa::caching::{self, LeaseId, of_oplock};
use crate::server::notices::Notices;
use crate::server::open::malformed;

/// Takes an acknowledgement. \[MS-SMB2\] 3.3.5.22.1
pub(crate) fn start(
    context: &mut Context<'_>,
    message: &[u8],
) -> Result<Progress<Infallible>, Status> {
    match Request::decode(message).map_err(malformed)? {
        Request::Oplock(acknowledgement) => acknowledge(context, acknowledgement),
        Request::Lease(acknowledgment) => acknowledge_lease(context, acknowledgment),
    }
}

fn acknowledge(
    context: &mut Context<'_>,
    acknowledgement: OplockBreak,
) -> Result<Progress<Infallible>, Status> {
    let OplockBreak {
        oplock_level,
        file_id,
    } = acknowledgement;
    let open = context.open(file_id)?;
    open.state.lock().notified_on = None;
    if oplock_level == OplockLevel::LEASE || !is_known(oplock_level) {
        return Err(Status::INVALID_PARAMETER);
    }
    let mut notices = Notices::new();
    let files = &context.server.files;
    let rights = of_oplock(oplock_level);
    let kept = files.acknowledge(open.key, open.file, rights, &mut notices);
    context.post(notices);
    let response = Response::Oplock(OplockBreak {
        oplock_level: caching::oplock_level(kept?),
        file_id: open.id,
    });
    Ok(Progress::Done(Reply::message(|out| response.encode(out))))
}

/// \[MS-SMB2\] 3.3.5.22.2
fn acknowledge_lease(
    context: &mut Context<'_>,
    acknowledgment: LeaseBreak,
) -> Result<Progress<Infallible>, Status> {
    let LeaseBreak {
        lease_key,
        lease_state,
    } = acknowledgment;
    let lease = LeaseId {
        client: context.session.origin.client_guid,
        key: lease_key,
    };
    let deadline = context.break_deadline();
    let mut notices = Notices::new();
    let files = &context.server.files;
    let result = files.acknowledge_lease(lease, lease_state, deadline, &mut notices);
    context.post(notices);
    result?;
    let response = Response::Lease(acknowledgment);
    Ok(Progress::Done(Reply::message(|out| response.encode(out))))
}

fn is_known(level: OplockLevel) -> bool {
    matches!(
        level,
        OplockLevel::NONE | OplockLevel::II | OplockLevel::EXCLUSIVE | OplockLevel::BATCH
    )
}
