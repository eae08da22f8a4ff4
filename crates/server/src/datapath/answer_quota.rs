//! Buffers of the pool for the answers of one connection: a client that asks for more than it takes
//! in must not hold the buffers of all.
//!
//! What counts is what a READ under way has, what waits to be sent and what is being sent: each
//! comes to an end without the others. What the members of a compound have read waits for the rest
//! of the compound, so that nothing may wait for it: beyond the limit such a READ fails.

use std::pin::pin;
use std::rc::Rc;

use ring::either;
use wire::Status;

use crate::connection::{Connection, State};

/// Bytes of buffers that the answers of one connection may take: eight of the largest kind, several
/// times what the clients that are known have under way on one connection.
const BYTES_MAX: usize = 64 << 20;
/// And no more than this part of the pool, so that several such clients leave some of it.
const PART_OF_POOL: usize = 4;

/// The limit where the pool of a worker has so many bytes.
pub(crate) fn limit(pool_bytes: usize) -> usize {
    BYTES_MAX.min(pool_bytes / PART_OF_POOL)
}

/// Bytes that a READ under way has, given back when they are dropped.
pub(super) struct Reserved {
    connection: Rc<Connection>,
    bytes: usize,
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let reading = &self.connection.reading;
        reading.set(reading.get() - self.bytes);
        self.connection.made_room();
    }
}

impl Connection {
    /// Takes so much, unless answers have too much already. One that takes all alone is let.
    pub(super) fn reserve(self: &Rc<Self>, state: &State, bytes: usize) -> Option<Reserved> {
        let reading = self.reading.get();
        let taken = reading + self.sending() + state.outbox.queued();
        if taken > 0 && taken + bytes > self.worker.answer_bytes() {
            return None;
        }
        self.reading.set(reading + bytes);
        let connection = Rc::clone(self);
        Some(Reserved { connection, bytes })
    }

    /// The same, once there is room.
    pub(super) async fn reserve_or_wait(self: &Rc<Self>, bytes: usize) -> Result<Reserved, Status> {
        while !self.ended.is_raised() {
            if let Some(reserved) = self.try_reserve(bytes)? {
                return Ok(reserved);
            }
            let (room, ended) = (pin!(self.room()), pin!(self.ended.raised()));
            either(room, ended).await;
        }
        Err(Status::CANCELLED)
    }

    fn try_reserve(self: &Rc<Self>, bytes: usize) -> Result<Option<Reserved>, Status> {
        let state = self.state.borrow();
        match self.may_keep(&state, bytes) {
            true => Ok(self.reserve(&state, bytes)),
            false => Err(Status::INSUFFICIENT_RESOURCES),
        }
    }

    /// Whether what the members of compounds have read leaves room for so much.
    pub(super) fn may_keep(&self, state: &State, bytes: usize) -> bool {
        let kept = state.payloads.buffer_bytes();
        kept == 0 || kept + bytes <= self.worker.answer_bytes()
    }
}
