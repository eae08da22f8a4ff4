//! READ. \[MS-SMB2\] 3.3.5.12

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use wire::Status;
use wire::access::AccessMask;
use wire::header::HEADER_LEN;
use wire::read::{DATA_OFFSET, Request, Response, ResponseFlags};

use crate::effect::{Delivery, Effect, Outcome, Payload, ReadPlan};
use crate::server::context::{Body, Context, Progress, Reply};
use crate::server::fsa::MAX_OFFSET;
use crate::server::fsa::byte_range::RangeAccess;
use crate::server::open::{Need, Open, malformed};
use crate::server::rdma_buffers;
use crate::violation::Violation;

/// Rights that permit to read: over a network, executing a file means reading it.
const READS: AccessMask = AccessMask(AccessMask::FILE_READ_DATA.0 | AccessMask::FILE_EXECUTE.0);

/// The state of a request that waits for the data.
pub(crate) struct Step {
    open: Arc<Open>,
    offset: u64,
    length: u32,
    minimum_count: u32,
}

/// Starts on a request.
pub(crate) fn start(context: &mut Context<'_>, message: &[u8]) -> Result<Progress<Step>, Status> {
    let request = Request::decode(message).map_err(malformed)?;
    let (channel, info) = (request.channel, request.channel_info);
    let delivery = match rdma_buffers::memory(context, channel, info, request.length)? {
        Some(memory) if request.length > 0 => Delivery::Remote(memory),
        _ => Delivery::Inline,
    };
    context.check_charge(request.length)?;
    let open = context.open(request.file_id)?;
    check(context, &open, &request, &delivery)?;
    let op = context.op();
    context.effects.push(Effect::Read(ReadPlan {
        op,
        file: open.file,
        offset: request.offset,
        length: request.length,
        access: context.access,
        delivery,
    }));
    let step = Step {
        open,
        offset: request.offset,
        length: request.length,
        minimum_count: request.minimum_count,
    };
    Ok(Progress::Wait(op, step))
}

fn check(
    context: &Context<'_>,
    open: &Open,
    request: &Request<'_>,
    delivery: &Delivery,
) -> Result<(), Status> {
    // smbtorture smb2.read.dir, with the status of Samba; Windows checks the length first.
    if open.is_directory {
        return Err(Status::INVALID_DEVICE_REQUEST);
    }
    let limit = match delivery {
        Delivery::Inline => context.max_inline_read(),
        Delivery::Remote(_) => context.max_read(),
    };
    if request.length > limit {
        return Err(Status::INVALID_PARAMETER);
    }
    // smbtorture smb2.rw.invalid: the end of the range must fit a signed number.
    let end = request.offset.checked_add(u64::from(request.length));
    if end.is_none_or(|end| end > MAX_OFFSET) {
        return Err(Status::INVALID_PARAMETER);
    }
    open.authorize(Need::Right(READS))?;
    let length = u64::from(request.length);
    open.check_locks(RangeAccess::Read, request.offset, length)
}

impl Step {
    pub(crate) fn resume(
        self,
        context: &mut Context<'_>,
        outcome: Outcome,
    ) -> Result<Progress<Step>, Status> {
        let (len, payload) = match outcome {
            Outcome::Read(payload) => (payload.len, Some(payload)),
            Outcome::Placed(len) => (len, None),
            Outcome::Failed(status) => return Err(status),
            // No answer is sent, and the content of the client's memory is undefined.
            Outcome::RemoteFailed => return Ok(Progress::End(Violation::RemoteMemory)),
            other => panic!("a read expects bytes, the driver answered {other:?}"),
        };
        assert!(len <= self.length, "no more is read than asked for");
        // [MS-SMB2] 3.3.5.12: too little is the end of the file; nothing is enough only where
        // nothing was asked for. smbtorture smb2.read.eof
        if len < self.minimum_count || (len == 0 && self.length > 0) {
            let release = payload.map(|payload| Effect::Release(payload.token));
            release.into_iter().for_each(|it| context.effects.push(it));
            return Err(Status::END_OF_FILE);
        }
        // Samba moves the position, Windows does not: smbtorture smb2.read.position takes either.
        let position = self.offset.saturating_add(u64::from(len));
        self.open.position.store(position, Ordering::Relaxed);
        *context.transferred = len;
        context.count_read(&self.open, len.into());
        Ok(Progress::Done(match payload {
            Some(payload) => answer(payload),
            None => placed(len),
        }))
    }
}

/// A head of 80 bytes, with the bytes of the file behind it.
fn answer(payload: Payload) -> Reply {
    let response = Response {
        data_offset: DATA_OFFSET,
        data_remaining: 0,
        flags: ResponseFlags::NONE,
    };
    let mut head = alloc::vec::Vec::with_capacity(usize::from(DATA_OFFSET));
    head.resize(HEADER_LEN, 0);
    response.encode_head(payload.len, &mut head);
    Reply {
        status: Status::SUCCESS,
        body: Body::WithPayload(head, payload),
    }
}

/// The same head alone: the bytes are with the client. ksmbd answers alike.
fn placed(len: u32) -> Reply {
    let response = Response {
        data_offset: DATA_OFFSET,
        data_remaining: len,
        flags: ResponseFlags::NONE,
    };
    Reply::message(|out| response.encode_head(0, out))
}

#[cfg(test)]
mod tests;
