//! Receiving: chunks that the kernel picks, or bytes straight into a buffer.
//!
//! A stream starts with a multishot receive: one submission, then a chunk for whatever arrives.
//! [`Stream::recv_into`] has to stop it first, which costs a cancel and a completion. A peer that
//! writes bulk data does so message after message, so a stream stays with single receives for the
//! next [`SINGLE_RECEIVES`] calls of [`Stream::recv`] after each `recv_into`: then the
//! alternation costs one submission for each part and nothing is ever cancelled.
//!
//! A receive that waits for much is woken when much is there (SO_RCVLOWAT), not by each packet:
//! on a machine that is peer to itself, it is the sender who would pay for that.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd};
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use io_uring::{opcode, squeue, types};

use crate::buffer::Buffer;
use crate::chunk::{Chunk, GROUP};
use crate::config::count;
use crate::epoll::Direction;
use crate::op::{Completion, Hold};
use crate::region::Region;
use crate::runtime::Handle;
use crate::stream::{Shared, Stream};
use crate::sys;
use crate::uring::Uring;

/// Receives after a `recv_into` that are armed one by one. A stream that has read this many
/// messages without bulk data is worth a multishot receive again.
const SINGLE_RECEIVES: u8 = 16;

/// Bytes that a receive of at least so many waits for before it is woken. More of them would leave
/// the cache before they are received; with fewer there are more turns.
const GATHERED_BYTES: usize = 512 << 10;

/// Shorter receives are woken by what comes first: it may be all that they wait for.
const GATHER_FROM: usize = 128 << 10;

/// The receiving state of a stream.
#[derive(Default)]
pub(crate) struct Receive {
    /// The receive into chunks that is armed (io_uring).
    operation: Option<usize>,
    /// Received, not yet delivered; the first may be consumed in part.
    pending: VecDeque<Chunk>,
    /// How many receives are still to be armed one by one.
    single_left: u8,
    /// The last operation found no free chunk: wait for one before the next.
    is_starved: bool,
    /// What every further receive reports, after the pending chunks.
    end: Option<End>,
}

#[derive(Clone, Copy)]
enum End {
    Stream,
    Error(i32),
    /// A `recv_into` was dropped midway; its bytes are lost.
    Torn,
}

impl Receive {
    /// The operation to abandon with the stream.
    pub(crate) fn operation(&self) -> Option<usize> {
        self.operation
    }

    /// Moves pending bytes into `target`; returns how many.
    fn drain_into(&mut self, target: &mut [u8]) -> usize {
        let mut done = 0;
        while done < target.len() {
            let Some(chunk) = self.pending.front_mut() else {
                break;
            };
            let count = chunk.len().min(target.len() - done);
            target[done..done + count].copy_from_slice(&chunk[..count]);
            chunk.advance(count);
            done += count;
            if chunk.is_empty() {
                self.pending.pop_front();
            }
        }
        done
    }

    /// Sorts one completion of the chunk operation in.
    fn note(&mut self, handle: &Handle, completion: Completion) {
        let chunks = &handle.inner().chunks;
        let result = completion.result;
        let chunk = chunks.received(completion);
        match result {
            0 => self.end = Some(End::Stream),
            1.. => self
                .pending
                .push_back(chunk.expect("received data is in a chunk")),
            _ => match -result {
                libc::ENOBUFS => self.is_starved = true,
                // Stopped by us, or by a signal: the next receive arms again.
                libc::ECANCELED | libc::EINTR | libc::EAGAIN => {}
                errno => self.end = Some(End::Error(errno)),
            },
        }
    }
}

impl Stream {
    /// The next bytes; an empty chunk means end of stream. Several chunks may be held at once.
    /// When all chunks of the runtime are out, it waits until one returns.
    ///
    /// Dropping the future loses nothing. One task at a time receives.
    pub async fn recv(&self) -> io::Result<Chunk> {
        match self.shared.source {
            None => poll_fn(|context| self.shared.poll_recv(context)).await,
            Some(_) => self.shared.recv_epoll().await,
        }
    }

    /// Fills `range` of `buffer` with the next bytes of the stream, straight from the socket
    /// after what had already been received in chunks. End of stream is `UnexpectedEof`.
    ///
    /// Dropping the future midway loses bytes: every receive after it fails with
    /// `ConnectionAborted`.
    pub async fn recv_into(&self, buffer: Buffer, range: Range<usize>) -> (io::Result<()>, Buffer) {
        let (result, region) = self.recv_into_region(buffer.into(), range).await;
        let buffer = region.into_buffer();
        (result, buffer.expect("the region was made of a buffer"))
    }

    /// [`recv_into`](Self::recv_into) for memory that is not the pool's.
    pub async fn recv_into_region(
        &self,
        mut region: Region,
        range: Range<usize>,
    ) -> (io::Result<()>, Region) {
        assert!(
            range.start <= range.end,
            "a range does not end before its start"
        );
        assert!(range.end <= region.len(), "a range lies inside its region");
        let shared = &*self.shared;
        let mut tear = Tear {
            shared,
            is_done: false,
        };
        let mut done = shared
            .receive
            .borrow_mut()
            .drain_into(&mut region[range.clone()]);
        if shared.source.is_none() && done < range.len() {
            shared.stop().await;
            let rest = &mut region[range.start + done..range.end];
            done += shared.receive.borrow_mut().drain_into(rest);
        }
        let mut result = Ok(());
        while done < range.len() && result.is_ok() {
            let rest = range.start + done..range.end;
            let step;
            (step, region) = shared.fill(region, rest).await;
            match step {
                Ok(0) => result = Err(shared.end(End::Stream)),
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => result = Err(error),
            }
        }
        tear.is_done = true;
        (result, region)
    }
}

/// Marks the stream when a `recv_into` does not reach its end.
struct Tear<'a> {
    shared: &'a Shared,
    is_done: bool,
}

impl Drop for Tear<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            self.shared.receive.borrow_mut().end = Some(End::Torn);
            self.shared.receive.borrow_mut().pending.clear();
        }
    }
}

impl Shared {
    fn uring(&self) -> &Uring {
        self.handle
            .inner()
            .uring()
            .expect("the driver does not change")
    }

    /// The error of a `recv_into` that meets the end; remembers it.
    fn end(&self, end: End) -> io::Error {
        self.receive.borrow_mut().end = Some(end);
        match end {
            End::Stream => io::ErrorKind::UnexpectedEof.into(),
            End::Error(errno) => io::Error::from_raw_os_error(errno),
            End::Torn => io::ErrorKind::ConnectionAborted.into(),
        }
    }

    /// What there is to deliver without the kernel.
    fn take_pending(&self) -> Option<io::Result<Chunk>> {
        let mut receive = self.receive.borrow_mut();
        if let Some(chunk) = receive.pending.pop_front() {
            return Some(Ok(chunk));
        }
        match receive.end? {
            End::Stream => Some(Ok(Chunk::end_of_stream())),
            End::Error(errno) => Some(Err(io::Error::from_raw_os_error(errno))),
            End::Torn => Some(Err(io::ErrorKind::ConnectionAborted.into())),
        }
    }

    fn poll_recv(&self, context: &mut Context<'_>) -> Poll<io::Result<Chunk>> {
        loop {
            if let Some(result) = self.take_pending() {
                return Poll::Ready(result);
            }
            let operation = self.receive.borrow().operation;
            let key = match operation {
                Some(key) => key,
                None => ready!(self.poll_arm(context))?,
            };
            let (completion, hold) = ready!(self.uring().poll(key, context));
            self.sort(completion, hold.is_some());
        }
    }

    fn sort(&self, completion: Completion, is_last: bool) {
        let mut receive = self.receive.borrow_mut();
        receive.note(&self.handle, completion);
        if is_last {
            receive.operation = None;
        }
    }

    /// Arms a receive into chunks, as soon as there may be a chunk for it.
    fn poll_arm(&self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut receive = self.receive.borrow_mut();
        if self.uring().is_closed() {
            return Poll::Ready(Err(io::Error::from_raw_os_error(libc::ECANCELED)));
        }
        self.wake_from(1)?;
        if receive.is_starved {
            ready!(self.handle.inner().chunks.poll_free(context));
            receive.is_starved = false;
        }
        let fd = types::Fd(self.socket.as_raw_fd());
        let entry = if receive.single_left > 0 {
            receive.single_left -= 1;
            let entry = opcode::Recv::new(fd, std::ptr::null_mut(), 0)
                .buf_group(GROUP)
                .build();
            entry.flags(squeue::Flags::BUFFER_SELECT)
        } else {
            opcode::RecvMulti::new(fd, GROUP).build()
        };
        // SAFETY: the kernel picks memory from the registered group, which outlives the ring's
        // operations; the hold owns the socket.
        let key = unsafe {
            self.uring()
                .submit(entry, Hold::Receive(Rc::clone(&self.socket)))
        };
        receive.operation = Some(key);
        Poll::Ready(Ok(key))
    }

    /// Ends the receive into chunks, and keeps what it has received until then.
    async fn stop(&self) {
        let operation = self.receive.borrow().operation;
        self.receive.borrow_mut().single_left = SINGLE_RECEIVES;
        let Some(key) = operation else { return };
        self.uring().cancel(key);
        poll_fn(|context| {
            while self.receive.borrow().operation.is_some() {
                let (completion, hold) = ready!(self.uring().poll(key, context));
                self.sort(completion, hold.is_some());
            }
            Poll::Ready(())
        })
        .await;
    }

    /// Receives into `range` once, as much of it as the kernel gives.
    async fn fill(&self, mut region: Region, range: Range<usize>) -> (io::Result<usize>, Region) {
        let end = self.receive.borrow().end;
        if let Some(end) = end {
            return (Err(self.end(end)), region);
        }
        let wait = match self.expect(range.len()) {
            Ok(flags) => flags,
            Err(error) => return (Err(error), region),
        };
        if self.source.is_some() {
            let result = self.recv_ready(&mut region[range]).await;
            return (result, region);
        }
        // More than 4 GiB are received in several steps.
        let length = u32::try_from(range.len()).unwrap_or(u32::MAX);
        let fd = types::Fd(self.socket.as_raw_fd());
        let recv = opcode::Recv::new(fd, region.pointer(&range), length);
        let entry = recv.flags(wait).build();
        let hold = Hold::Fill(Rc::clone(&self.socket), region);
        // SAFETY: the entry points into the region, whose memory does not move with the value;
        // the hold owns it and the socket.
        match unsafe { self.handle.operate(entry, hold) }.await {
            (result, Hold::Fill(_, region)) => (result.map(|count| count as usize), region),
            _ => unreachable!("an operation gives back what it was given"),
        }
    }

    /// Prepares for a receive of `len` bytes; tells the flags that it takes.
    ///
    /// The mark never asks for more than the receive does, since the peer may wait for an answer to
    /// just that. So it may not be passed with MSG_WAITALL, of which the kernel would wait for the
    /// mark once more when little is missing.
    fn expect(&self, len: usize) -> io::Result<libc::c_int> {
        if len < GATHER_FROM {
            self.wake_from(1)?;
            return Ok(libc::MSG_WAITALL);
        }
        self.wake_from(len.min(GATHERED_BYTES))?;
        Ok(0)
    }

    /// Has the kernel wake whoever waits for bytes once so many are there, the connection ends, or
    /// no more find room.
    fn wake_from(&self, bytes: usize) -> io::Result<()> {
        if self.low_water.get() == bytes {
            return Ok(());
        }
        let value = i32::try_from(bytes).expect("a mark is small");
        sys::set_socket_option(self.socket.as_fd(), libc::SO_RCVLOWAT, value)?;
        self.low_water.set(bytes);
        Ok(())
    }

    async fn recv_epoll(&self) -> io::Result<Chunk> {
        if let Some(result) = self.take_pending() {
            return result;
        }
        self.wake_from(1)?;
        // Readiness first: a chunk is not held while the peer is silent.
        loop {
            let token = self.source.expect("only a watched socket is here");
            self.handle.ready(token, Direction::Read).await;
            let chunks = &self.handle.inner().chunks;
            poll_fn(|context| chunks.poll_free(context)).await;
            let Some(mut chunk) = chunks.take() else {
                continue;
            };
            match self.recv_now(&mut chunk) {
                Ok(count) => {
                    chunk.truncate(count);
                    return Ok(chunk);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    drop(chunk);
                    self.wait(Direction::Read).await;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    async fn recv_ready(&self, target: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.recv_now(target) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.wait(Direction::Read).await;
                }
                result => return result,
            }
        }
    }

    fn recv_now(&self, target: &mut [u8]) -> io::Result<usize> {
        count(&self.handle.inner().stats, |stats| stats.inline_calls += 1);
        sys::recv(self.socket.as_fd(), target, libc::MSG_DONTWAIT)
    }
}
