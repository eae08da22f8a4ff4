//! WRITE from a frame or from memory.

use std::ops::Range;
use std::rc::Rc;

use proto::effect::Outcome;
use ring::{Buffer, File, Personality};
use vfs::{Attempt, Descriptor, Direct, Effort};
use wire::Status;

use super::context::{Context, Started};
use super::frame::{Frame, Source};
use super::span::Target;
use super::{direct, outcome};
use crate::counters::StoreOperation;

/// Starts a WRITE of the bytes in `range` of the frame. If it has to wait, it takes the buffer of
/// the frame, or a copy of the bytes.
pub(crate) fn write_inbound(
    context: &Rc<Context>,
    target: Target,
    frame: &mut Frame<'_>,
    range: Range<usize>,
) -> Started<impl Future<Output = Outcome> + use<>> {
    let has_buffer = frame.has_buffer();
    let bytes = frame
        .bytes()
        .get(range.clone())
        .expect("the core names bytes of its frame");
    let direct = match has_buffer {
        true => direct::write_past_cache(context, &target, bytes),
        false => None,
    };
    if direct.is_none()
        && let Attempt::Done(outcome) = write_cached(&target, bytes)
    {
        return Started::Done(outcome);
    }
    Started::Pending(write_later(context, target, frame.take(range), direct))
}

/// Starts a WRITE of bytes in memory.
pub(crate) fn write_owned(
    context: &Rc<Context>,
    target: Target,
    bytes: Vec<u8>,
) -> Started<impl Future<Output = Outcome> + use<>> {
    match write_cached(&target, &bytes) {
        Attempt::Done(outcome) => Started::Done(outcome),
        Attempt::WouldBlock => {
            Started::Pending(write_later(context, target, Source::Bytes(bytes), None))
        }
    }
}

fn write_cached(target: &Target, bytes: &[u8]) -> Attempt<Outcome> {
    let Target {
        file_system,
        file,
        offset,
        through,
    } = target;
    match file_system.write(*file, *offset, bytes, *through, Effort::Cached) {
        Attempt::Done(result) => Attempt::Done(outcome::write(result)),
        Attempt::WouldBlock => Attempt::WouldBlock,
    }
}

fn write_later(
    context: &Rc<Context>,
    target: Target,
    source: Source,
    direct: Option<Direct>,
) -> impl Future<Output = Outcome> + use<> {
    let context = Rc::clone(context);
    async move {
        let writing = async {
            match (direct, source) {
                (Some(direct), Source::Buffer(buffer, range)) => {
                    write_direct(&context, target, buffer, range, direct).await
                }
                (_, source) => write_waiting(&context, target, source).await,
            }
        };
        outcome::write(context.timed(StoreOperation::Write, writing).await)
    }
}

/// Writes the bytes of a buffer: at once if that does not block.
pub(super) async fn write_buffer(
    context: &Context,
    target: Target,
    buffer: Buffer,
    length: usize,
) -> Outcome {
    let bytes = &buffer[..length];
    if let Some(direct) = direct::write_past_cache(context, &target, bytes) {
        let writing = write_direct(context, target, buffer, 0..length, direct);
        return outcome::write(context.timed(StoreOperation::Write, writing).await);
    }
    match write_cached(&target, bytes) {
        Attempt::Done(outcome) => outcome,
        Attempt::WouldBlock => {
            let source = Source::Buffer(buffer, 0..length);
            let writing = write_waiting(context, target, source);
            outcome::write(context.timed(StoreOperation::Write, writing).await)
        }
    }
}

/// Writes past the page cache, and the bytes that the kernel did not take through the page cache.
async fn write_direct(
    context: &Context,
    target: Target,
    buffer: Buffer,
    range: Range<usize>,
    direct: Direct,
) -> Result<usize, Status> {
    // The write gate of `direct` is released here: the rest would wait for it.
    let (written, buffer) = direct::write(context, &target, buffer, range.clone(), direct).await?;
    if written == range.len() {
        return Ok(written);
    }
    let rest = Target {
        offset: target.offset.map(|offset| offset + written as u64),
        ..target
    };
    let source = Source::Buffer(buffer, range.start + written..range.end);
    Ok(written + write_waiting(context, rest, source).await?)
}

/// Writes the bytes of a buffer on the ring, other bytes on a thread.
async fn write_waiting(context: &Context, target: Target, source: Source) -> Result<usize, Status> {
    let Target {
        file_system,
        file,
        offset,
        through,
    } = target;
    let source = match (source, offset) {
        (Source::Buffer(buffer, range), Some(offset))
            if !through && !file_system.gates_writes() =>
        {
            if let Some(descriptor) = file_system.descriptor(file)
                && let Some(personality) = context.worker.personality(&descriptor.token)?
            {
                let source = (buffer, range);
                return write_file(context, descriptor, source, offset, personality).await;
            }
            Source::Buffer(buffer, range)
        }
        (source, _) => source,
    };
    let write = move || {
        let bytes = source.bytes();
        match file_system.write(file, offset, bytes, through, Effort::Blocking) {
            Attempt::Done(result) => result,
            Attempt::WouldBlock => unreachable!("a blocking write blocks"),
        }
    };
    context
        .handle()
        .blocking_for(context.source.get(), write)
        .await
}

async fn write_file(
    context: &Context,
    descriptor: Descriptor,
    (mut buffer, range): (Buffer, Range<usize>),
    offset: u64,
    personality: Personality,
) -> Result<usize, Status> {
    let fd = descriptor.fd.try_clone();
    let file = File::from(fd.map_err(|error| outcome::status(&error))?);
    let mut written = 0;
    while written < range.len() {
        let left = range.start + written..range.end;
        let at = offset + written as u64;
        let write = context
            .handle()
            .write_at(&file, buffer, left, at, Some(personality.clone()));
        let (result, returned) = write.await;
        buffer = returned;
        match result.map_err(|error| outcome::status(&error))? {
            0 => return Err(Status::DISK_FULL),
            count => written += count,
        }
    }
    Ok(written)
}
