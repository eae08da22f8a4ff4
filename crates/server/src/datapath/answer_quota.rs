//! Quota of pool buffers for the responses of one connection.
//!
//! Without it, a client that requests more than it receives would hold the buffers of all clients.
//!
//! The quota counts the buffers of running READs, of queued responses and of the running send. Each
//! of them ends without the others. The data of READs in a compound wait for the rest of the
//! compound, so nothing may wait for them: if they exceed the quota, the READ fails.

use std::pin::pin;
use std::rc::Rc;

use ring::either;
use wire::Status;

use super::context::Context;
use crate::counters::Wait;

/// Most bytes of buffers for the responses of one connection: eight of the largest responses, which
/// is several times what known clients request on one connection at a time.
const MAX_BYTES: usize = 64 << 20;
/// The quota is at most the pool divided by this, so that several such clients leave a part of it.
const POOL_DIVISOR: usize = 4;

/// The quota of one connection for a worker's pool of `pool_bytes` bytes.
pub(crate) fn limit(pool_bytes: usize) -> usize {
    MAX_BYTES.min(pool_bytes / POOL_DIVISOR)
}

/// Bytes of a running READ. They return to the quota on drop.
pub(super) struct AnswerReservation {
    context: Rc<Context>,
    bytes: usize,
}

impl Drop for AnswerReservation {
    fn drop(&mut self) {
        let reading = &self.context.reading;
        reading.set(reading.get() - self.bytes);
        self.context.released.raise();
    }
}

/// Reserves bytes for a READ; `None` if that would exceed the quota, or if READs wait for it. A
/// single response may exceed it.
pub(super) fn reserve(context: &Rc<Context>, bytes: usize) -> Option<AnswerReservation> {
    match context.readers.is_empty() {
        true => take(context, bytes),
        false => None,
    }
}

fn take(context: &Rc<Context>, bytes: usize) -> Option<AnswerReservation> {
    let reading = context.reading.get();
    let queued = context.output.borrow().outbox.queued();
    let taken = reading + context.sending.get() + queued;
    if taken > 0 && taken + bytes > context.worker.shared.answer_bytes {
        return None;
    }
    context.reading.set(reading + bytes);
    Some(AnswerReservation {
        context: Rc::clone(context),
        bytes,
    })
}

/// Reserves bytes for a READ. Waits until the quota has them and earlier READs have theirs.
///
/// # Errors
/// CANCELLED if the connection ends, INSUFFICIENT_RESOURCES if compounds hold too much.
pub(super) async fn reserve_or_wait(
    context: &Rc<Context>,
    bytes: usize,
) -> Result<AnswerReservation, Status> {
    if !may_keep(context, bytes) {
        return Err(Status::INSUFFICIENT_RESOURCES);
    }
    if let Some(reservation) = reserve(context, bytes) {
        return Ok(reservation);
    }
    let waiting = wait(context, bytes);
    context.waited(Wait::ResponseMemory, waiting).await
}

async fn wait(context: &Rc<Context>, bytes: usize) -> Result<AnswerReservation, Status> {
    let place = context.readers.enter();
    place.first().await;
    while !context.ended.is_raised() {
        if !may_keep(context, bytes) {
            return Err(Status::INSUFFICIENT_RESOURCES);
        }
        if let Some(reservation) = take(context, bytes) {
            return Ok(reservation);
        }
        let (released, ended) = (pin!(context.released()), pin!(context.ended.raised()));
        either(released, ended).await;
    }
    Err(Status::CANCELLED)
}

/// Returns true if the data of READs in compounds leave space for `bytes` in the quota.
pub(super) fn may_keep(context: &Context, bytes: usize) -> bool {
    let kept = context.output.borrow().payloads.buffer_bytes();
    kept == 0 || kept + bytes <= context.worker.shared.answer_bytes
}
