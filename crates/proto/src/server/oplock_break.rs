//! OPLOCK_BREAK: the server asks a client to give an oplock up, and the client says that it has.
//! \[MS-SMB2\] 3.3.4.6, 3.3.5.22

use core::convert::Infallible;

use wire::Status;
use wire::access::OplockLevel;
use wire::oplock_break::{OplockBreak, Request, Response};

use crate::server::context::{Context, Progress, Reply};
use crate::server::fsa::caching::{self, of_oplock};
use crate::server::notices::Notices;
use crate::server::open::malformed;

/// Takes an acknowledgement. \[MS-SMB2\] 3.3.5.22.1
pub(crate) fn start(
    context: &mut Context<'_>,
    message: &[u8],
) -> Result<Progress<Infallible>, Status> {
    match Request::decode(message).map_err(malformed)? {
        Request::Oplock(acknowledgement) => acknowledge(context, acknowledgement),
        // No lease is ever granted. \[MS-SMB2\] 3.3.5.22.2
        Request::Lease(_) => Err(Status::OBJECT_NAME_NOT_FOUND),
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

fn is_known(level: OplockLevel) -> bool {
    matches!(
        level,
        OplockLevel::NONE | OplockLevel::II | OplockLevel::EXCLUSIVE | OplockLevel::BATCH
    )
}
