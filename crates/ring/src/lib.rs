//! The asynchronous I/O of smbeam: executor, sockets, registered buffers, files, mailbox.
//!
//! This is the only crate that uses io_uring, epoll or fanotify, and the main user of `unsafe`.
//!
//! One [`Runtime`] belongs to one worker thread and runs `!Send` futures. Its loop has three steps:
//! poll the ready tasks (up to a budget), make one `io_uring_enter` that both submits and waits,
//! handle all completions of that wake-up. All functions take a cheap, cloneable [`Handle`], which
//! cannot leave its thread. Other threads reach a worker through a [`Sender`].
//!
//! An operation owns the memory that it gives to the kernel until its last completion. No borrow
//! crosses a submit, so dropping any future at any time is sound: the driver cancels the operation
//! and frees its memory after the last completion.
//!
//! | item | purpose |
//! |---|---|
//! | [`Runtime`], [`Handle`], [`JoinHandle`] | executor: spawn, sleep, timeout, blocking |
//! | [`Listener`], [`Stream`], [`Chunk`], [`Part`] | TCP |
//! | [`Udp`], [`Datagrams`], [`Outgoing`] | UDP, many datagrams in one system call |
//! | [`Pool`], [`Buffer`], [`Holder`] | large, registered, bounded memory, in shares |
//! | [`Memory`] | memory that an RDMA device registers once |
//! | [`Region`], [`Source`], [`lend`] | memory of the caller, received into and sent from |
//! | [`FileRange`] | a range of a file, to send |
//! | [`Views`], [`View`] | a mapped range of a file in the page cache, for the kernel to read |
//! | [`File`] | positioned reads and writes, fsync |
//! | [`Readiness`] | readiness of any descriptor |
//! | [`Fanotify`] | changes that other processes make in directories; needs no runtime |
//! | [`mailbox()`], [`Sender`], [`Receiver`] | messages from other threads |

#![deny(unsafe_op_in_unsafe_fn)]

mod blocking;
mod buffer;
mod chunk;
mod config;
mod epoll;
mod fair_queue;
mod fanotify;
mod file;
mod file_range;
mod listener;
mod lock;
mod mailbox;
mod memory;
mod op;
mod operation;
mod pipe;
mod pool;
mod probe;
mod provided;
mod quota;
mod readiness;
mod recv;
mod reflink;
mod region;
mod runtime;
mod send;
mod shares;
mod signal;
mod splice;
mod stream;
mod sys;
mod task;
mod task_queue;
mod thread_pool;
mod time;
mod turn;
mod udp;
mod uring;
mod view;
mod wait;
mod waker;
mod xattr;

pub use buffer::{Buffer, HEADROOM_BYTES};
pub use chunk::Chunk;
pub use config::{Config, Driver, Io, IoReport, PoolConfig, Stats};
pub use fair_queue::JobSource;
pub use fanotify::{
    Entry, Event, Fanotify, FileHandle, file_handle, open_by_handle, openable_handle,
};
pub use file::{File, Personality};
pub use file_range::FileRange;
pub use listener::{Listener, is_shortage};
pub use mailbox::{Receiver, SendError, Sender, mailbox};
pub use memory::Memory;
pub use pool::{Holder, Pool};
pub use quota::{DiskQuota, QuotaKind, QuotaState, next_quota, quota_of, quota_state, set_quota};
pub use readiness::{Interest, Readiness};
pub use reflink::clone_range;
pub use region::{Region, Source, lend, lend_mut};
pub use runtime::{Handle, Runtime};
pub use send::Part;
pub use shares::Starved;
pub use signal::{Either, Raised, Signal, either};
pub use stream::Stream;
pub use task::{JoinError, JoinHandle};
pub use task_queue::{Place, TaskQueue};
pub use thread_pool::ThreadPool;
pub use time::{Elapsed, Sleep};
pub use udp::{DATAGRAMS_BYTES_MAX, Datagrams, Outgoing, Udp, UdpBuffers, steer};
pub use view::{NoView, VIEW_BYTES_MIN, View, Views};
pub use xattr::directory_attribute;
