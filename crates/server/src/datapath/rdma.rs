//! READ and WRITE by RDMA, between buffers of the pool and memory of the client.
//!
//! The response to a READ is sent directly after the RDMA WRITE, before the RDMA WRITE is known to
//! have completed. A queue pair runs its operations in order: when the response arrives, the data
//! are in the client's memory. If the RDMA WRITE fails, no later message arrives.
//! \[MS-SMBD\] 3.1.4.5

use std::os::fd::AsFd;
use std::rc::Rc;

use net::smbdirect::RdmaMemory;
use proto::effect::{Outcome, ReadPlan};
use ring::{Buffer, Part};
use tracing::debug;
use vfs::{Attempt, Effort};
use wire::Status;
use wire::smbd::BufferDescriptorV1;

use super::context::{Context, Started};
use super::direct;
use super::rdma_quota::RdmaReservation;
use super::read::read_file;
use super::span::{Span, Target};
use super::write::write_buffer;
use crate::counters::StoreOperation;

/// The memory of the client. The core uses it only if the transport has RDMA.
fn client_memory(context: &Context) -> RdmaMemory {
    let remote = context.stream.rdma_memory();
    remote.expect("only a stream of SMB Direct has such a carrier")
}

/// Starts a READ into the memory of the client that `pieces` describe. Cached data go there at
/// once, directly from the page cache if the provider supports that.
pub(crate) fn read(
    context: &Rc<Context>,
    plan: &ReadPlan,
    pieces: &[BufferDescriptorV1],
) -> Started<impl Future<Output = Outcome> + use<>> {
    let span = Span::of(context, plan);
    let direct = direct::read_past_cache(context, &span);
    let mut held = None;
    if direct.is_none() {
        if let Some(descriptor) = span.file_system.descriptor(span.file)
            && client_memory(context).write_file(
                descriptor.fd.as_fd(),
                span.offset,
                span.length,
                pieces,
            )
        {
            return Started::Done(Outcome::Placed(plan.length));
        }
        match read_cached(context, &span) {
            Some((Attempt::Done(result), buffer, reservation)) => {
                return Started::Done(place(context, result, buffer, pieces, reservation));
            }
            Some((Attempt::WouldBlock, buffer, reservation)) => {
                held = Some((reservation, buffer));
            }
            None => {}
        }
    }
    let (context, pieces) = (Rc::clone(context), pieces.to_vec());
    Started::Pending(async move {
        let (reservation, buffer) = match held {
            Some(held) => held,
            None => {
                let length = direct::buffer_len(direct.as_ref(), &span);
                match reserved_buffer(&context, length).await {
                    Ok(held) => held,
                    Err(status) => return Outcome::Failed(status),
                }
            }
        };
        let reading = read_file(&context, &span, buffer, direct);
        let (result, buffer) = context.timed(StoreOperation::Read, reading).await;
        place(&context, result, buffer, &pieces, reservation)
    })
}

/// A READ of cached data, with the buffer that it reads into.
type CachedRead = (Attempt<Result<usize, Status>>, Buffer, RdmaReservation);

/// Reads cached data into a buffer; `None` if no buffer is available now.
fn read_cached(context: &Context, span: &Span) -> Option<CachedRead> {
    let reservation = context.rdma.reserve(span.length)?;
    let mut buffer = context.holder.take(span.length)?;
    let bytes = &mut buffer[..span.length];
    let attempt = (span.file_system).read(span.file, span.offset, bytes, Effort::Cached);
    Some((attempt, buffer, reservation))
}

async fn reserved_buffer(
    context: &Context,
    length: usize,
) -> Result<(RdmaReservation, Buffer), Status> {
    let reservation = context.rdma.reserve_or_wait(length).await;
    let buffer = context.buffer(length).await?;
    Ok((reservation, buffer))
}

/// Posts the RDMA WRITE of the read bytes.
fn place(
    context: &Rc<Context>,
    result: Result<usize, Status>,
    buffer: Buffer,
    pieces: &[BufferDescriptorV1],
    reservation: RdmaReservation,
) -> Outcome {
    let len = match result {
        Ok(0) => return Outcome::Placed(0),
        Ok(len) => len,
        Err(status) => return Outcome::Failed(status),
    };
    let parts = vec![Part::Buffer(buffer, 0..len)];
    let writing = client_memory(context).write(parts, pieces);
    let task_context = Rc::clone(context);
    context.handle().spawn(async move {
        let (result, _parts) = writing.await;
        drop(reservation);
        if let Err(error) = result {
            let peer = task_context.peer;
            debug!(%peer, %error, "RDMA WRITE to the client's memory failed");
            task_context.ended.raise();
        }
    });
    Outcome::Placed(u32::try_from(len).expect("a READ has 32 bits of length"))
}

/// Starts a WRITE of data in the client's memory: reads all of it first.
pub(crate) fn write(
    context: &Rc<Context>,
    target: Target,
    pieces: Vec<BufferDescriptorV1>,
) -> Started<impl Future<Output = Outcome> + use<>> {
    let total = BufferDescriptorV1::total(&pieces);
    let length = usize::try_from(total).expect("the core bounds a WRITE");
    let context = Rc::clone(context);
    Started::Pending(async move {
        let (_reservation, buffer) = match reserved_buffer(&context, length).await {
            Ok(held) => held,
            Err(status) => return Outcome::Failed(status),
        };
        let reading = client_memory(&context).read(&pieces, buffer, 0..length);
        let (result, buffer) = reading.await;
        if let Err(error) = result {
            debug!(peer = %context.peer, %error, "RDMA READ of the client's memory failed");
            return Outcome::RemoteFailed;
        }
        write_buffer(&context, target, buffer, length).await
    })
}
