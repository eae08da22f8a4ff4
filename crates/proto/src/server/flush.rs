//! FLUSH. \[MS-SMB2\] 3.3.5.11

use wire::Status;
use wire::access::AccessMask;
use wire::flush::{Request, Response};

use crate::effect::Outcome;
use crate::file::{FileOp, Operation};
use crate::server::config::SyncPolicy;
use crate::server::context::{Context, Progress, Reply};
use crate::server::open::{Need, malformed};

/// Rights that let an open flush. Of a directory they are FILE_ADD_FILE and
/// FILE_ADD_SUBDIRECTORY: the same bits.
const FLUSHES: AccessMask =
    AccessMask(AccessMask::FILE_WRITE_DATA.0 | AccessMask::FILE_APPEND_DATA.0);

/// The state of a request that waits for stable storage.
pub(crate) struct Step;

/// Starts on a request. The flush of macOS to the bottom of the disk (Reserved1 of 0xFFFF) is no
/// other than that of all.
pub(crate) fn start(context: &mut Context<'_>, message: &[u8]) -> Result<Progress<Step>, Status> {
    let request = Request::decode(message).map_err(malformed)?;
    let open = context.open(request.file_id)?;
    open.authorize(Need::Right(FLUSHES))?;
    Ok(match open.share.sync {
        SyncPolicy::Client => done(),
        SyncPolicy::Flush | SyncPolicy::Always => {
            context.wait(FileOp::OnOpen(open.file, Operation::Flush), Step)
        }
    })
}

fn done() -> Progress<Step> {
    Progress::Done(Reply::message(|out| Response.encode(out)))
}

impl Step {
    pub(crate) fn resume(
        self,
        _context: &mut Context<'_>,
        outcome: Outcome,
    ) -> Result<Progress<Step>, Status> {
        outcome.expect_file()?.expect_done();
        Ok(done())
    }
}

#[cfg(test)]
mod tests;
