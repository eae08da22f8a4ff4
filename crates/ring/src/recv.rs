//! Receiving: chunks that the kernel picks, or bytes straight into a buffer.
//!
//! A stream starts with a multishot receive: one submission, then a chunk for each arrival.
//! [`Stream::recv_into`] first has to stop it, which costs a cancel and a completion. A peer that
//! writes bulk data sends one such message after the other. So after each `recv_into` the stream
//! uses single receives for the next [`SINGLE_RECEIVES`] calls of [`Stream::recv`]. Then the
//! alternation costs one submission per part, and the driver cancels nothing.
//!
//! A long receive sets a low-water mark (SO_RCVLOWAT), so the kernel wakes it once for much data,
//! not for each packet. If both peers run on one machine, the sender's thread would spend the time
//! on these wake-ups.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd};
use std::pin::pin;
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
use crate::signal::{Either, Signal, either};
use crate::stream::{Shared, Stream};
use crate::sys;
use crate::uring::Uring;

/// Number of single receives after a `recv_into`. A stream that has read this many messages without
/// bulk data is worth a multishot receive again.
const SINGLE_RECEIVES: u8 = 16;

/// Low-water mark in bytes of a receive of at least this length. More data would leave the
/// processor's cache before it is received; less data costs more turns.
const GATHERED_BYTES: usize = 512 << 10;

/// A receive of fewer bytes wakes with the first arrival, which may be all that it waits for.
const GATHER_FROM: usize = 128 << 10;

/// The receiving state of a stream.
#[derive(Default)]
pub(crate) struct Receive {
    /// Key of the armed receive into chunks (io_uring).
    operation: Option<usize>,
    /// Received chunks that the caller has not taken yet. The caller may have read a part of the
    /// first one.
    pending: VecDeque<Chunk>,
    /// Number of single receives left before the next multishot receive.
    single_left: u8,
    /// The last operation found no free chunk: wait for one before the next operation.
    is_starved: bool,
    /// The result of every further receive, after the pending chunks.
    end: Option<End>,
}

#[derive(Clone, Copy)]
enum End {
    Stream,
    Error(i32),
    /// A caller dropped a `recv_into` midway; its bytes are lost.
    Torn,
}

impl Receive {
    /// Key of the operation, which the stream abandons with its end.
    pub(crate) fn operation(&self) -> Option<usize> {
        self.operation
    }

    /// Moves pending bytes into `target` and returns their number.
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

    /// Records one completion of the receive into chunks.
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
                // The driver or a signal has stopped the receive: the next one arms it again.
                libc::ECANCELED | libc::EINTR | libc::EAGAIN => {}
                errno => self.end = Some(End::Error(errno)),
            },
        }
    }
}

impl Stream {
    /// Waits for the next bytes of the stream and returns them. An empty chunk means end of stream.
    /// The caller may hold several chunks. If all chunks of the runtime are in use, this function
    /// waits until one is dropped.
    ///
    /// Dropping the future loses no bytes. One task at a time may receive.
    ///
    /// # Errors
    /// The connection is lost, for example ECONNRESET; ECANCELED if the runtime has ended.
    /// `ConnectionAborted` if an earlier [`recv_into`](Self::recv_into) was dropped before its end.
    pub async fn recv(&self) -> io::Result<Chunk> {
        match self.shared.source {
            None => poll_fn(|context| self.shared.poll_recv(context)).await,
            Some(_) => self.shared.recv_epoll().await,
        }
    }

    /// Fills `range` of `buffer` with the next bytes of the stream: first from received chunks with
    /// unread bytes, then straight from the socket. Returns the buffer with the result. Dropping
    /// the future before its end loses bytes: every later receive fails with `ConnectionAborted`.
    /// One task at a time may receive.
    ///
    /// # Errors
    /// `UnexpectedEof` if the stream ends before the range is full. Any other error means that the
    /// connection is lost; the range may hold any bytes then.
    pub async fn recv_into(&self, buffer: Buffer, range: Range<usize>) -> (io::Result<()>, Buffer) {
        let (result, region) = self.recv_into_region(buffer.into(), range).await;
        let buffer = region.into_buffer();
        (result, buffer.expect("the region was made of a buffer"))
    }

    /// Waits for the next bytes of the stream and writes them to the start of `range` of `buffer`.
    /// Returns the number of received bytes and the buffer. The number is at least 1, or 0 if
    /// `interrupt` is raised first. Dropping the future before its end loses bytes: every later
    /// receive fails with `ConnectionAborted`. One task at a time may receive.
    ///
    /// # Errors
    /// `UnexpectedEof` at the end of the stream. Any other error means that the connection is lost.
    ///
    /// # Panics
    /// When the range is empty or ends after the buffer.
    pub async fn recv_part_into(
        &self,
        mut buffer: Buffer,
        range: Range<usize>,
        interrupt: &Signal,
    ) -> (io::Result<usize>, Buffer) {
        assert!(!range.is_empty(), "a receive asks for bytes");
        let shared = &*self.shared;
        let mut guard = TornGuard {
            shared,
            is_done: false,
        };
        let target = &mut buffer[range.clone()];
        let mut done = shared.receive.borrow_mut().drain_into(target);
        if done == 0 && shared.source.is_none() {
            shared.stop().await;
            let target = &mut buffer[range.clone()];
            done = shared.receive.borrow_mut().drain_into(target);
        }
        let (result, region) = match done {
            0 => shared.fill(buffer.into(), range, Some(interrupt)).await,
            done => (Ok(done), buffer.into()),
        };
        let result = match result {
            Ok(0) if !interrupt.is_raised() => Err(shared.end(End::Stream)),
            Err(error) if error.raw_os_error() == Some(libc::ECANCELED) => Ok(0),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
            result => result,
        };
        guard.is_done = true;
        let buffer = region.into_buffer();
        (result, buffer.expect("the region was made of a buffer"))
    }

    /// Fills `range` of `region` with the next bytes of the stream: first from received chunks with
    /// unread bytes, then straight from the socket. Returns the region with the result. Dropping
    /// the future before its end loses bytes: every later receive fails with `ConnectionAborted`.
    /// One task at a time may receive.
    ///
    /// # Errors
    /// `UnexpectedEof` if the stream ends before the range is full. Any other error means that the
    /// connection is lost; the range may hold any bytes then.
    ///
    /// # Panics
    /// The range is not inside the region.
    pub async fn recv_into_region(
        &self,
        mut region: Region,
        range: Range<usize>,
    ) -> (io::Result<()>, Region) {
        assert!(
            range.start <= range.end,
            "a range does not end before its start"
        );
        assert!(range.end <= region.len(), "a range is inside its region");
        let shared = &*self.shared;
        let mut guard = TornGuard {
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
            (step, region) = shared.fill(region, rest, None).await;
            match step {
                Ok(0) => result = Err(shared.end(End::Stream)),
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => result = Err(error),
            }
        }
        guard.is_done = true;
        (result, region)
    }
}

/// Marks the stream as torn unless its `recv_into` reaches the end.
struct TornGuard<'a> {
    shared: &'a Shared,
    is_done: bool,
}

impl Drop for TornGuard<'_> {
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

    /// Records the end of the stream and returns the error of a `recv_into` that meets it.
    fn end(&self, end: End) -> io::Error {
        self.receive.borrow_mut().end = Some(end);
        match end {
            End::Stream => io::ErrorKind::UnexpectedEof.into(),
            End::Error(errno) => io::Error::from_raw_os_error(errno),
            End::Torn => io::ErrorKind::ConnectionAborted.into(),
        }
    }

    /// Takes a pending chunk or the recorded end, without a system call.
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

    /// Arms a receive into chunks once a chunk is free.
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

    /// Stops the receive into chunks, and keeps the bytes that it receives until then.
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

    /// Receives into `range` once. Returns the number of bytes, which may be smaller than the
    /// range. Once `interrupt` is raised, the receive ends with ECANCELED or with the bytes that it
    /// has.
    async fn fill(
        &self,
        mut region: Region,
        range: Range<usize>,
        interrupt: Option<&Signal>,
    ) -> (io::Result<usize>, Region) {
        let end = self.receive.borrow().end;
        if let Some(end) = end {
            return (Err(self.end(end)), region);
        }
        let wait = match self.expect(range.len()) {
            Ok(flags) => flags,
            Err(error) => return (Err(error), region),
        };
        if self.source.is_some() {
            let result = self.recv_ready(&mut region[range], interrupt).await;
            return (result, region);
        }
        // A receive of more than 4 GiB takes several steps.
        let length = u32::try_from(range.len()).unwrap_or(u32::MAX);
        let fd = types::Fd(self.socket.as_raw_fd());
        let recv = opcode::Recv::new(fd, region.pointer(&range), length);
        let entry = recv.flags(wait).build();
        let hold = Hold::Fill(Rc::clone(&self.socket), region);
        // SAFETY: the entry points into the region. Its memory does not move with the value, and
        // the hold owns the region and the socket.
        match unsafe { self.handle.operate_until(entry, hold, interrupt) }.await {
            (result, Hold::Fill(_, region)) => (result.map(|count| count as usize), region),
            _ => unreachable!("an operation returns its hold"),
        }
    }

    /// Prepares a receive of `len` bytes and returns its flags.
    ///
    /// The low-water mark never exceeds the length of the receive, since the peer may wait for the
    /// answer to exactly these bytes. A receive with a mark does not use MSG_WAITALL: with that
    /// flag the kernel would wait for the mark again when only a few bytes are missing.
    fn expect(&self, len: usize) -> io::Result<libc::c_int> {
        if len < GATHER_FROM {
            self.wake_from(1)?;
            return Ok(libc::MSG_WAITALL);
        }
        self.wake_from(len.min(GATHERED_BYTES))?;
        Ok(0)
    }

    /// Sets the low-water mark: the kernel wakes the receive when this number of bytes is
    /// available, when the connection ends, or when its buffer is full.
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
        // Wait for readiness first: the stream holds no chunk while the peer is silent.
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

    async fn recv_ready(&self, target: &mut [u8], interrupt: Option<&Signal>) -> io::Result<usize> {
        loop {
            match self.recv_now(target) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => return result,
            }
            let waiting = pin!(self.wait(Direction::Read));
            match interrupt {
                None => waiting.await,
                Some(interrupt) => {
                    if let Either::Second(()) = either(waiting, pin!(interrupt.raised())).await {
                        return Err(io::Error::from_raw_os_error(libc::ECANCELED));
                    }
                }
            }
        }
    }

    fn recv_now(&self, target: &mut [u8]) -> io::Result<usize> {
        count(&self.handle.inner().stats, |stats| stats.inline_calls += 1);
        sys::recv(self.socket.as_fd(), target, libc::MSG_DONTWAIT)
    }
}
