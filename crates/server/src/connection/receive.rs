//! Receives frames for the core.
//!
//! [`net::Receiver`] handles short frames inside the received chunk. The rest of a long frame goes
//! directly into a buffer of the pool, from which a WRITE can write it.

use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use net::{FrameError, FrameHandler, Next, Partial, Received, Receiver};
use ring::{Buffer, Chunk};
use tracing::warn;

use super::Connection;
use crate::codes::{EndedConnection, Reason as _};
use crate::counters::Wait;
use crate::datapath::{Frame, frame_start};

/// Missing bytes from which on the rest of a frame is received into its own buffer.
const DIRECT_BYTES: usize = 32 << 10;

/// Time without a request after which a client is idle: the time is no wait of a running load.
const IDLE_MAX: Duration = Duration::from_secs(1);

/// Most received bytes of a frame that gives its buffer back: they stay in plain memory.
const RETAINED_BYTES: usize = 1 << 20;

/// Receives and handles frames until the peer closes or the connection ends.
pub(crate) async fn frames(connection: &Rc<Connection>) -> io::Result<()> {
    let mut frames = Frames {
        connection,
        receiver: Receiver::default(),
        deadline: None,
        rest: Vec::new(),
    };
    loop {
        let chunk = frames.chunk().await?;
        if chunk.is_empty() {
            return Ok(());
        }
        match frames.receiver.take(connection, chunk) {
            Received::Continue => {}
            Received::Partial(partial) => frames.direct(partial).await?,
            // A copy: other connections receive into the chunk meanwhile.
            Received::Paused(rest) => frames.rest = rest.to_vec(),
            Received::Ended => return Ok(()),
        }
        frames.note_memory()?;
        if connection.context.ended.is_raised() {
            return Ok(());
        }
    }
}

impl Connection {
    fn note_received(&self, bytes: usize) {
        self.note_request();
        self.received.set(self.received.get() + bytes as u64);
        self.context.worker.counters.received.add(bytes as u64);
    }

    /// Counts the time since the last response, if no request was in progress.
    fn note_request(&self) {
        if let Some(since) = self.idle_since.take() {
            let time = since.elapsed();
            if time < IDLE_MAX {
                self.context.worker.counters.count_wait(Wait::Client, time);
            }
        }
    }
}

impl FrameHandler for Connection {
    /// The rest of every long frame goes into a buffer of the pool.
    type Destination = ();

    fn parse(&self, bytes: &[u8]) -> Result<Next, FrameError> {
        let limit = self.state.borrow().core.max_frame();
        self.context.output.borrow_mut().framing.next(bytes, limit)
    }

    fn frame(self: &Rc<Self>, message: &mut [u8]) {
        self.handle_frame(&mut Frame::Borrowed(message));
    }

    fn admits(&self, message: &[u8]) -> bool {
        Connection::admits(self, message)
    }

    /// Only a peer that has logged in gets a buffer before its frame is complete. Other peers could
    /// take all buffers with the first few bytes of large frames.
    fn expect(&self, start: &[u8], message_len: usize) -> Option<()> {
        let is_long = message_len - start.len() >= DIRECT_BYTES;
        (is_long && self.state.borrow().core.is_logged_in()).then_some(())
    }

    fn control(&self, answer: &[u8]) {
        if !answer.is_empty() {
            let mut output = self.context.output.borrow_mut();
            output.outbox.push_raw(answer);
            self.to_send.raise();
        }
    }

    fn refuse(&self, reason: &FrameError, answer: &[u8]) {
        let code = EndedConnection::from(reason).code();
        warn!(peer = %self.peer(), %reason, code, "disconnecting");
        self.control(answer);
        self.context.ended.raise();
    }

    fn has_ended(&self) -> bool {
        self.context.ended.is_raised()
    }
}

/// The receiving side of a connection.
struct Frames<'a> {
    connection: &'a Rc<Connection>,
    receiver: Receiver,
    /// Time by which the incomplete frame must be complete, counted from its first bytes.
    deadline: Option<Instant>,
    /// Received bytes after the frame that was handled last.
    rest: Vec<u8>,
}

impl Frames<'_> {
    /// The next bytes. An incomplete frame must continue in time.
    async fn chunk(&mut self) -> io::Result<Chunk> {
        let connection = self.connection;
        if !self.receiver.is_inside_frame() {
            self.deadline = None;
        }
        if !self.rest.is_empty() {
            let context = &connection.context;
            context
                .waited(Wait::ResponseMemory, connection.resumed())
                .await;
            return Ok(Chunk::from(std::mem::take(&mut self.rest)));
        }
        let receiving = connection.context.stream.recv();
        let received = match self.receiver.is_inside_frame() {
            true => self.in_time(receiving).await?,
            false => receiving.await,
        };
        if let Ok(chunk) = &received {
            connection.note_received(chunk.len());
        }
        received
    }

    /// Counts the memory of an incomplete frame, which has a limit before the login.
    fn note_memory(&self) -> io::Result<()> {
        let bytes = self.receiver.gathered_capacity() + self.rest.capacity();
        match self.connection.state.borrow().permit.set_frame_bytes(bytes) {
            true => Ok(()),
            false => Err(io::Error::other("limits.half_open_memory_mb is reached")),
        }
    }

    async fn in_time<F: Future>(&mut self, future: F) -> io::Result<F::Output> {
        let limit = self.connection.context.worker.frame_timeout();
        let now = Instant::now();
        let deadline = *self.deadline.get_or_insert(now + limit);
        let left = deadline.saturating_duration_since(now);
        self.connection
            .handle()
            .timeout(left, future)
            .await
            .map_err(|_| {
                let limit_ms = limit.as_millis();
                warn!(
                    peer = %self.connection.peer(),
                    limit_ms,
                    code = EndedConnection::SlowFrame.code(),
                    "disconnecting: a frame arrives too slowly"
                );
                io::Error::from(io::ErrorKind::TimedOut)
            })
    }

    /// Receives the rest of a long frame into a buffer, and handles the frame.
    async fn direct(&mut self, partial: Partial<()>) -> io::Result<()> {
        let largest = self.connection.handle().pool().largest();
        let (len, received) = (partial.message_len, partial.start());
        let start = match self.connection.context.worker.live().shares.is_any_direct {
            true => frame_start(received, len, largest),
            false => 0,
        };
        let (filled, end) = (start + received.len(), start + len);
        let holder = &self.connection.context.holder;
        let buffer = match holder.take(end) {
            Some(mut buffer) => {
                buffer[start..filled].copy_from_slice(received);
                drop(partial);
                buffer
            }
            None => {
                // Other connections receive into the chunk while this one waits for memory.
                let received = partial.into_start();
                self.buffer_with(&received, start, end).await?
            }
        };
        let buffer = self.fill(buffer, start, filled, end).await?;
        self.connection.note_received(end - filled);
        let mut frame = Frame::Owned(Some(buffer), start..end);
        self.connection.handle_frame(&mut frame);
        Ok(())
    }

    /// Waits for a buffer of `end` bytes, and copies the received bytes to `start`.
    async fn buffer_with(
        &mut self,
        received: &[u8],
        start: usize,
        end: usize,
    ) -> io::Result<Buffer> {
        let context = &self.connection.context;
        context.worker.shortage.raise();
        let waiting = context.waited(Wait::Buffer, context.holder.take_or_wait(end));
        let mut buffer: Buffer = self.in_time(waiting).await?;
        buffer[start..start + received.len()].copy_from_slice(received);
        Ok(buffer)
    }

    /// Receives the rest of a frame, from `filled` to `end`. If other connections need the buffer
    /// and the peer is silent, the frame gives the buffer back, and takes one again when the peer
    /// continues.
    async fn fill(
        &mut self,
        mut buffer: Buffer,
        start: usize,
        mut filled: usize,
        end: usize,
    ) -> io::Result<Buffer> {
        let context = Rc::clone(&self.connection.context);
        context.give_back.lower();
        while filled < end {
            context.arriving.set(Some(Instant::now()));
            let (stream, interrupt) = (&context.stream, &context.give_back);
            let receiving = stream.recv_part_into(buffer, filled..end, interrupt);
            let received = self.in_time(receiving).await;
            context.arriving.set(None);
            let (result, returned) = received?;
            buffer = returned;
            filled += result?;
            if context.give_back.is_raised() && filled < end {
                context.give_back.lower();
                if filled - start <= RETAINED_BYTES {
                    let mut received = buffer[start..filled].to_vec();
                    drop(buffer);
                    let chunk = self.in_time(context.stream.recv()).await??;
                    if chunk.is_empty() {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                    // Later frames may follow in the chunk: their bytes must not get lost.
                    let count = chunk.len().min(end - filled);
                    received.extend_from_slice(&chunk[..count]);
                    self.rest = chunk[count..].to_vec();
                    self.connection.note_received(self.rest.len());
                    drop(chunk);
                    filled += count;
                    buffer = self.buffer_with(&received, start, end).await?;
                }
            }
        }
        Ok(buffer)
    }
}
