//! Reparse points: data that clients attach to files, such as the targets of symbolic links.
//! \[MS-FSA\] 2.1.5.10.14, 2.1.5.10.34, 2.1.5.10.6

use alloc::sync::Arc;

use wire::Status;
use wire::access::AccessMask;
use wire::change_notify::CompletionFilter;
use wire::ioctl::Request;
use wire::reparse::ReparsePoint;

use super::request::Asked;
use crate::effect::Outcome;
use crate::file::{FileOp, Operation};
use crate::server::context::{Context, Progress, Reply};
use crate::server::open::{Need, Open};

/// Rights of which each lets an open change a reparse point, as with Samba.
const CHANGES: AccessMask =
    AccessMask(AccessMask::FILE_WRITE_DATA.0 | AccessMask::FILE_WRITE_ATTRIBUTES.0);

/// The state of a request that waits for the file system.
pub(crate) struct Step {
    asked: Asked,
    change: Change,
}

/// The function of the request.
enum Change {
    /// The reparse point is read; the output has at most this length in bytes.
    None(u32),
    /// The reparse point is set or removed.
    Of(Arc<Open>),
}

/// FSCTL_GET_REPARSE_POINT.
pub(super) fn get(
    context: &mut Context<'_>,
    request: &Request<'_>,
) -> Result<Progress<Step>, Status> {
    let open = context.open(request.file_id)?;
    let step = Step {
        asked: Asked::by(request),
        change: Change::None(request.max_output_response),
    };
    let operation = FileOp::OnOpen(open.file, Operation::ReadReparse);
    Ok(context.wait(operation, step))
}

/// FSCTL_SET_REPARSE_POINT.
pub(super) fn set(
    context: &mut Context<'_>,
    request: &Request<'_>,
) -> Result<Progress<Step>, Status> {
    let (open, reparse) = changed(context, request)?;
    let operation = Operation::SetReparse {
        tag: reparse.tag,
        data: request.input.to_vec(),
    };
    Ok(change(context, request, open, operation))
}

/// FSCTL_DELETE_REPARSE_POINT.
pub(super) fn delete(
    context: &mut Context<'_>,
    request: &Request<'_>,
) -> Result<Progress<Step>, Status> {
    let (open, reparse) = changed(context, request)?;
    if !reparse.data.is_empty() {
        return Err(Status::IO_REPARSE_DATA_INVALID);
    }
    let operation = Operation::RemoveReparse { tag: reparse.tag };
    Ok(change(context, request, open, operation))
}

/// The open and the reparse point of a request that changes one.
fn changed<'a>(
    context: &mut Context<'_>,
    request: &Request<'a>,
) -> Result<(Arc<Open>, ReparsePoint<'a>), Status> {
    let open = context.open(request.file_id)?;
    context.audit_reparse(&open);
    open.authorize(Need::Right(CHANGES))?;
    // A reparse point belongs to the file. smbtorture smb2.ioctl-on-stream
    if open.is_named_stream() {
        return Err(Status::INVALID_PARAMETER);
    }
    let reparse = ReparsePoint::decode(request.input);
    Ok((open, reparse.map_err(|_| Status::IO_REPARSE_DATA_INVALID)?))
}

fn change(
    context: &mut Context<'_>,
    request: &Request<'_>,
    open: Arc<Open>,
    operation: Operation,
) -> Progress<Step> {
    let operation = FileOp::OnOpen(open.file, operation);
    let step = Step {
        asked: Asked::by(request),
        change: Change::Of(open),
    };
    context.wait(operation, step)
}

impl Step {
    /// Clients take NOT_A_REPARSE_POINT for "not a link", and other statuses for errors:
    /// smbprotocol does.
    pub(super) fn resume(
        self,
        context: &mut Context<'_>,
        outcome: Outcome,
    ) -> Result<Reply, Status> {
        let outcome = outcome.expect_file()?;
        let max_len = match self.change {
            Change::Of(open) => {
                outcome.expect_done();
                context.report_change(&open, CompletionFilter::ATTRIBUTES);
                return Ok(self.asked.reply(Status::SUCCESS, &[]));
            }
            Change::None(max_len) => max_len as usize,
        };
        let data = outcome.expect_reparse();
        if data.len() <= max_len {
            return Ok(self.asked.reply(Status::SUCCESS, &data));
        }
        // [MS-FSA] 2.1.5.10.14: the header, at least, has to fit.
        match max_len < 8 {
            true => Err(Status::BUFFER_TOO_SMALL),
            false => Ok(self.asked.reply(Status::BUFFER_OVERFLOW, &data[..max_len])),
        }
    }
}
