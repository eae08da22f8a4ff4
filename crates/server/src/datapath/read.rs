//! READ into a payload of the response.

use std::os::fd::AsFd;
use std::rc::Rc;

use net::PayloadBytes;
use proto::effect::{Access, Outcome, ReadPlan};
use ring::{Buffer, File, VIEW_BYTES_MIN, View};
use vfs::{Attempt, Effort};
use wire::Status;

use super::answer_quota::{AnswerReservation, may_keep, reserve, reserve_or_wait};
use super::context::{Context, Started};
use super::direct::{self, DirectRead};
use super::outcome;
use super::span::Span;
use crate::counters::StoreOperation;

/// Longest READ, in bytes, that is copied next to the head of its response. One part to send
/// instead of two is worth more than the copy. It also saves a buffer of the pool.
const SMALL_READ: usize = 16 << 10;

/// Starts a READ into the response.
pub(crate) fn read(
    context: &Rc<Context>,
    plan: &ReadPlan,
) -> Started<impl Future<Output = Outcome> + use<>> {
    let span = Span::of(context, plan);
    let length = span.length;
    let direct = direct::read_past_cache(context, &span);
    if direct.is_some() {
        return Started::Pending(read_later(context, span, None, direct));
    }
    if length <= SMALL_READ {
        return match read_small(context, &span) {
            Attempt::Done(outcome) => Started::Done(outcome),
            Attempt::WouldBlock => Started::Pending(read_later(context, span, None, None)),
        };
    }
    if !may_keep(context, length) {
        return Started::Done(Outcome::Failed(Status::INSUFFICIENT_RESOURCES));
    }
    let reservation = reserve(context, length);
    if plan.access == Access::Opaque
        && reservation.is_some()
        && let Some(view) = view(context, &span)
    {
        let whole = Ok(view.len());
        return Started::Done(outcome::read(context, whole, |_| PayloadBytes::View(view)));
    }
    let buffer = reservation.map(|reservation| (reservation, context.holder.take(length)));
    let Some((reservation, Some(mut buffer))) = buffer else {
        return Started::Pending(read_later(context, span, None, None));
    };
    match span.file_system.read(
        span.file,
        span.offset,
        &mut buffer[..length],
        Effort::Cached,
    ) {
        Attempt::Done(result) => Started::Done(outcome::read(context, result, |len| {
            PayloadBytes::Large(buffer, len)
        })),
        Attempt::WouldBlock => {
            let held = Some((reservation, buffer));
            Started::Pending(read_later(context, span, held, None))
        }
    }
}

fn read_small(context: &Context, span: &Span) -> Attempt<Outcome> {
    let mut bytes = vec![0; span.length];
    match span
        .file_system
        .read(span.file, span.offset, &mut bytes, Effort::Cached)
    {
        Attempt::Done(result) => Attempt::Done(outcome::read(context, result, |len| {
            bytes.truncate(len);
            PayloadBytes::Small(bytes)
        })),
        Attempt::WouldBlock => Attempt::WouldBlock,
    }
}

/// The bytes in the page cache, which saves a copy. The kernel copies them during the send, so this
/// process must not read them before.
fn view(context: &Context, span: &Span) -> Option<View> {
    if !context.transport.sends_files() || span.length < VIEW_BYTES_MIN {
        return None;
    }
    let descriptor = span.file_system.descriptor(span.file)?;
    let worker = &context.worker;
    worker.view(descriptor.fd.as_fd(), span.offset, span.length)
}

/// Reads on the ring if the file has a descriptor, else on a thread.
fn read_later(
    context: &Rc<Context>,
    span: Span,
    buffer: Option<(AnswerReservation, Buffer)>,
    direct: Option<DirectRead>,
) -> impl Future<Output = Outcome> + use<> {
    let context = Rc::clone(context);
    async move {
        let held = match buffer {
            Some(held) => Ok(held),
            None => reserved_buffer(&context, direct::buffer_len(direct.as_ref(), &span)).await,
        };
        let (_reservation, buffer) = match held {
            Ok(held) => held,
            Err(status) => return Outcome::Failed(status),
        };
        let reading = read_file(&context, &span, buffer, direct);
        let (result, buffer) = context.timed(StoreOperation::Read, reading).await;
        outcome::read(&context, result, |len| PayloadBytes::Large(buffer, len))
    }
}

async fn reserved_buffer(
    context: &Rc<Context>,
    bytes: usize,
) -> Result<(AnswerReservation, Buffer), Status> {
    let reservation = reserve_or_wait(context, bytes).await?;
    let buffer = context.buffer(bytes).await?;
    Ok((reservation, buffer))
}

/// Reads into the start of `buffer` on the ring. Returns the number of bytes.
pub(super) async fn read_file(
    context: &Context,
    span: &Span,
    mut buffer: Buffer,
    direct: Option<DirectRead>,
) -> (Result<usize, Status>, Buffer) {
    let mut filled = 0;
    if let Some(direct) = direct {
        let result;
        (result, buffer) = direct::read(context, span, buffer, direct).await;
        match result {
            Ok(count) if count < span.length => filled = count,
            whole_or_failed => return (whole_or_failed, buffer),
        }
    }
    let Some(descriptor) = span.file_system.descriptor(span.file) else {
        return (Err(Status::FILE_CLOSED), buffer);
    };
    // A descriptor for the ring only: the open may be closed while the read runs.
    let file = match descriptor.fd.try_clone() {
        Ok(fd) => File::from(fd),
        Err(error) => return (Err(outcome::status(&error)), buffer),
    };
    while filled < span.length {
        let at = span.offset + filled as u64;
        // Reads need no credentials: the file was opened with them.
        let read = context
            .handle()
            .read_at(&file, buffer, filled..span.length, at, None);
        let (result, returned) = read.await;
        buffer = returned;
        match result {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) => return (Err(outcome::status(&error)), buffer),
        }
    }
    (Ok(filled), buffer)
}
