//! io_uring and epoll behind one face: executor, sockets, registered buffers, files, mailbox.
//!
//! This is the only crate that speaks io_uring, epoll or fanotify, and the home of `unsafe`.
//!
//! One [`Runtime`] belongs to one worker thread. It runs `!Send` futures and turns in one loop:
//! run what is ready (bounded by a budget), then one `io_uring_enter` that both submits and waits,
//! then all completions of that wake-up. Everything is reached through a cheap, cloneable
//! [`Handle`], which cannot leave its thread; other threads reach a worker through a [`Sender`].
//!
//! Memory given to the kernel is owned by the operation until its last completion. No borrow
//! crosses a submit, so dropping any future at any time is sound: the operation is cancelled, and
//! its buffers come home when the kernel has let go of them.
//!
//! | what | where |
//! |---|---|
//! | [`Runtime`], [`Handle`], [`JoinHandle`] | executor: spawn, sleep, timeout, blocking |
//! | [`Listener`], [`Stream`], [`Chunk`], [`Part`] | TCP |
//! | [`Udp`], [`Datagrams`], [`Outgoing`] | UDP, many datagrams at once |
//! | [`Pool`], [`Buffer`] | large, registered, bounded memory |
//! | [`Memory`] | what a device can be told of once |
//! | [`Region`], [`Source`], [`lend`] | memory of others, received into and sent from |
//! | [`FileRange`] | a part of a file, to be sent |
//! | [`Views`], [`View`] | a part of a file that is in memory, for the kernel to read there |
//! | [`File`] | positioned reads and writes, fsync |
//! | [`Readiness`] | when any descriptor is readable or writable |
//! | [`Fanotify`] | what others change in directories; needs no runtime |
//! | [`mailbox()`], [`Sender`], [`Receiver`] | messages from other threads |

#![deny(unsafe_op_in_unsafe_fn)]

mod blocking;
mod buffer;
mod chunk;
mod config;
mod epoll;
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
mod readiness;
mod recv;
mod region;
mod runtime;
mod send;
mod signal;
mod splice;
mod stream;
mod sys;
mod task;
mod time;
mod turn;
mod udp;
mod uring;
mod view;
mod wait;
mod waker;

pub use buffer::{Buffer, HEAD_ROOM_BYTES};
pub use chunk::Chunk;
pub use config::{Config, Driver, Io, IoReport, PoolConfig, Stats};
pub use fanotify::{Entry, Event, Fanotify, FileHandle, file_handle};
pub use file::{File, Personality};
pub use file_range::FileRange;
pub use listener::{Listener, is_shortage};
pub use mailbox::{Receiver, SendError, Sender, mailbox};
pub use memory::Memory;
pub use pool::Pool;
pub use readiness::{Interest, Readiness};
pub use region::{Region, Source, lend, lend_mut};
pub use runtime::{Handle, Runtime};
pub use send::Part;
pub use signal::{Either, Signal, either};
pub use stream::Stream;
pub use task::{JoinError, JoinHandle};
pub use time::{Elapsed, Sleep};
pub use udp::{DATAGRAMS_BYTES_MAX, Datagrams, Outgoing, Udp, UdpBuffers, steer};
pub use view::{NoView, VIEW_BYTES_MIN, View, Views};
