//! The I/O threads and their channels, below everything that a caller sees.
//!
//! From the bottom up: [`tree`], [`leases`] and [`opens`] are the state that outlives a connection;
//! a [`call`] is one request with its future; a [`dispatch::Dispatch`] chooses the channel of a
//! call; a [`channel`] drives the protocol core on an I/O [`thread`]; [`resume`] logs in again
//! after the loss of all channels.

pub(crate) mod answer;
pub(crate) mod call;
pub(crate) mod calls;
pub(crate) mod channel;
pub(crate) mod connect;
pub(crate) mod context;
pub(crate) mod dispatch;
pub(crate) mod leases;
pub(crate) mod message;
pub(crate) mod opens;
pub(crate) mod pauses;
pub(crate) mod quic;
pub(crate) mod rdma_registration;
pub(crate) mod receive;
pub(crate) mod resume;
pub(crate) mod slot;
pub(crate) mod smbdirect;
pub(crate) mod thread;
pub(crate) mod tree;
pub(crate) mod window;
