//! READ and WRITE whose data go by RDMA, between buffers of the pool and memory of the client.
//!
//! The answer to a READ is sent right behind the RDMA WRITE, and not once that is known to be
//! done: a queue pair does one after the other, so that the client finds the bytes when the answer
//! arrives, and of a WRITE that fails nothing that was sent after it arrives. \[MS-SMBD\] 3.1.4.5

use std::cell::Cell;
use std::os::fd::AsFd;
use std::rc::Rc;
use std::sync::Arc;

use net::smbdirect::RdmaMemory;
use proto::effect::{Outcome, ReadPlan};
use proto::id::OpId;
use ring::{Buffer, Part, Signal};
use tracing::debug;
use vfs::{Attempt, Effort};
use wire::Status;
use wire::smbd::BufferDescriptorV1;

use super::{Source, Span, Target, direct, write_outcome};
use crate::connection::{Connection, State};

/// Bytes of buffers that RDMA of one connection may work on: eight of the largest transfers. A
/// client that asks for more than its line carries does not hold the buffers of all.
const MAX_BYTES: usize = 64 << 20;

/// Memory that RDMA of a connection works on.
#[derive(Default)]
pub(crate) struct Room {
    taken: Cell<usize>,
    freed: Signal,
}

/// Some of it, given back when it is dropped.
struct Taken {
    room: Rc<Room>,
    bytes: usize,
}

impl Room {
    /// Takes so much, unless others have too much already.
    fn take(self: &Rc<Self>, bytes: usize) -> Option<Taken> {
        let taken = self.taken.get();
        if taken > 0 && taken + bytes > MAX_BYTES {
            return None;
        }
        self.taken.set(taken + bytes);
        let room = Rc::clone(self);
        Some(Taken { room, bytes })
    }

    async fn take_or_wait(self: &Rc<Self>, bytes: usize) -> Taken {
        loop {
            if let Some(taken) = self.take(bytes) {
                return taken;
            }
            self.freed.lower();
            self.freed.raised().await;
        }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.room.taken.set(self.room.taken.get() - self.bytes);
        self.room.freed.raise();
    }
}

impl Connection {
    /// The client's memory. The core names it only where the carrier has RDMA.
    fn client_memory(&self) -> RdmaMemory {
        let remote = self.stream.rdma_memory();
        remote.expect("only a stream of SMB Direct has such a carrier")
    }

    /// Reads, and has the bytes written to the client's memory: at once where they are in memory,
    /// and from there where the provider can.
    pub(super) fn read_remote(
        self: &Rc<Self>,
        state: &mut State,
        plan: &ReadPlan,
        pieces: &[BufferDescriptorV1],
    ) {
        let &ReadPlan {
            op,
            file,
            offset,
            length,
            ..
        } = plan;
        let length = length as usize;
        let file_system = Arc::clone(self.worker.shares().of_open(file));
        let direct = self.direct_read(&file_system, file, offset, length);
        if direct.is_none()
            && let Some(descriptor) = file_system.descriptor(file)
            && (self.client_memory()).write_file(descriptor.fd.as_fd(), offset, length, pieces)
        {
            return self.complete_now(state, op, Outcome::Placed(plan.length));
        }
        let room = direct::room(direct.as_ref(), length);
        let mut held = None;
        if direct.is_none()
            && let Some(taken) = self.remote.take(length)
            && let Some(mut buffer) = self.handle().pool().take(length)
        {
            match file_system.read(file, offset, &mut buffer[..length], Effort::Cached) {
                Attempt::Done(result) => {
                    let outcome = self.place(result, buffer, pieces, taken);
                    return self.complete_now(state, op, outcome);
                }
                Attempt::WouldBlock => held = Some((taken, buffer)),
            }
        }
        let (connection, pieces) = (Rc::clone(self), pieces.to_vec());
        self.run(op, async move {
            let (taken, buffer) = match held {
                Some(held) => held,
                None => connection.buffer_for_remote(room).await,
            };
            let span = Span {
                file,
                offset,
                length,
            };
            let reading = connection.read_file(&file_system, span, buffer, direct);
            let (result, buffer) = reading.await;
            connection.place(result, buffer, &pieces, taken)
        });
    }

    async fn buffer_for_remote(&self, length: usize) -> (Taken, Buffer) {
        let taken = self.remote.take_or_wait(length).await;
        let buffer = self.handle().pool().take_or_wait(length).await;
        (taken, buffer)
    }

    /// Posts the bytes that were read.
    fn place(
        self: &Rc<Self>,
        result: Result<usize, Status>,
        buffer: Buffer,
        pieces: &[BufferDescriptorV1],
        taken: Taken,
    ) -> Outcome {
        let len = match result {
            Ok(0) => return Outcome::Placed(0),
            Ok(len) => len,
            Err(status) => return Outcome::Failed(status),
        };
        let parts = vec![Part::Buffer(buffer, 0..len)];
        let writing = self.client_memory().write(parts, pieces);
        let connection = Rc::clone(self);
        self.handle().spawn(async move {
            let (result, _parts) = writing.await;
            drop(taken);
            if let Err(error) = result {
                debug!(peer = %connection.peer, %error, "the client's memory cannot be written");
                connection.ended.raise();
            }
        });
        Outcome::Placed(u32::try_from(len).expect("a READ has 32 bits of length"))
    }

    /// Reads the client's memory, and writes what was there once all of it is here.
    pub(super) fn write_remote(
        self: &Rc<Self>,
        op: OpId,
        target: Target,
        pieces: Vec<BufferDescriptorV1>,
    ) {
        let total = BufferDescriptorV1::total(&pieces);
        let length = usize::try_from(total).expect("the core bounds a WRITE");
        let connection = Rc::clone(self);
        self.run(op, async move {
            let (_taken, buffer) = connection.buffer_for_remote(length).await;
            let reading = connection.client_memory().read(&pieces, buffer, 0..length);
            let (result, buffer) = reading.await;
            if let Err(error) = result {
                debug!(peer = %connection.peer, %error, "the client's memory cannot be read");
                return Outcome::RemoteFailed;
            }
            connection.write_fetched(target, buffer, length).await
        });
    }

    async fn write_fetched(&self, target: Target, buffer: Buffer, length: usize) -> Outcome {
        let (file, offset, through) = (target.file, target.offset, target.through);
        let bytes = &buffer[..length];
        if let Some(direct) = self.direct_write(&target.file_system, file, offset, bytes) {
            let writing = self.write_direct(target, buffer, 0..length, direct);
            return write_outcome(writing.await);
        }
        let attempt = (target.file_system).write(file, offset, bytes, through, Effort::Cached);
        write_outcome(match attempt {
            Attempt::Done(result) => result,
            Attempt::WouldBlock => {
                let source = Source::Buffer(buffer, 0..length);
                self.write_later(target, source).await
            }
        })
    }
}
