//! Does what the core asks for: files, and the bytes between files and sockets.
//!
//! Every operation is first tried without waiting. Reads of cached pages, writes into the page
//! cache and metadata with cached directory entries are plain system calls, which is faster than
//! any queue (see docs/design/data-path.md). An operation that would block continues on the ring
//! (reads and writes of files) or on a thread (the rest), and the connection handles other requests
//! meanwhile.
//!
//! The functions take a [`Context`] and return a [`Started`] operation. They never call the core.

mod accounts;
mod answer_quota;
mod context;
mod direct;
mod file;
mod frame;
mod login;
mod logins;
mod outcome;
mod rdma;
mod rdma_quota;
mod read;
mod span;
mod store;
mod write;

pub(crate) use accounts::look_up_accounts;
pub(crate) use answer_quota::limit as answer_limit;
pub(crate) use context::{Context, Output, Started};
pub(crate) use direct::frame_start;
pub(crate) use file::execute;
pub(crate) use frame::Frame;
pub(crate) use login::{authenticate, end as end_login};
pub(crate) use rdma::{read as read_rdma, write as write_rdma};
pub(crate) use read::read;
pub(crate) use span::Target;
pub(crate) use store::store;
pub(crate) use write::{write_inbound, write_owned};
