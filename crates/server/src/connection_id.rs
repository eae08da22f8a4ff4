//! The worker that serves a connection is part of the connection's id.

use proto::id::ConnectionId;

/// Low bits of a [`ConnectionId`]: the number of the connection on its worker. The high bits are
/// the index of the worker.
const NUMBER_BITS: u32 = 48;

/// Makes the id of the connection with this number on a worker.
pub(crate) fn new(worker: usize, number: u64) -> ConnectionId {
    assert!(number < 1 << NUMBER_BITS, "connection numbers have 48 bits");
    ConnectionId(((worker as u64) << NUMBER_BITS) | number)
}

/// Index of the worker that serves the connection.
pub(crate) fn worker_of(id: ConnectionId) -> usize {
    (id.0 >> NUMBER_BITS) as usize
}

/// Number of the connection on its worker.
pub(crate) fn number_of(id: ConnectionId) -> u64 {
    id.0 & ((1 << NUMBER_BITS) - 1)
}
