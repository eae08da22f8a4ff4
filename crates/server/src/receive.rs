//! Bytes of a stream become frames for the core.
//!
//! Small frames are handled where they were received; what is cut off at the end of a chunk is
//! gathered. The rest of a large frame is received straight into a buffer of its own, from which
//! it can be written.

use std::io;
use std::rc::Rc;
use std::time::Instant;

use net::{FrameError, Next, PREFIX_LEN};
use ring::{Buffer, Chunk};
use tracing::warn;

use crate::connection::Connection;
use crate::datapath::{Frame, direct};

/// Bytes from which on the rest of a frame is received into a buffer of its own.
const DIRECT_BYTES: usize = 32 << 10;

/// Takes frames in until the peer closes.
pub(crate) async fn frames(connection: &Rc<Connection>) -> io::Result<()> {
    let mut receiver = Receiver {
        connection,
        gathered: Vec::new(),
        deadline: None,
    };
    loop {
        connection.room_to_answer().await;
        let chunk = receiver.chunk().await?;
        connection.note_received(chunk.len());
        if chunk.is_empty() || !receiver.take(chunk).await? {
            return Ok(());
        }
    }
}

struct Receiver<'a> {
    connection: &'a Rc<Connection>,
    /// The start of a frame whose rest has not come yet.
    gathered: Vec<u8>,
    /// When that frame must be whole: from its first byte on, however it trickles in.
    deadline: Option<Instant>,
}

/// What is left to do once every whole frame is handled.
enum Rest {
    /// Nothing, or a start that was gathered.
    More,
    /// Receive the rest of a frame of so many bytes, of which these are there.
    Direct(usize),
    /// The connection ends.
    End,
}

impl Receiver<'_> {
    /// The next bytes. A frame that has begun must go on.
    async fn chunk(&mut self) -> io::Result<Chunk> {
        if self.gathered.is_empty() {
            self.deadline = None;
            return self.connection.stream.recv().await;
        }
        let connection = self.connection;
        self.in_time(connection.stream.recv()).await?
    }

    async fn in_time<F: Future>(&mut self, future: F) -> io::Result<F::Output> {
        let limit = self.connection.worker.frame_timeout();
        let now = Instant::now();
        let deadline = *self.deadline.get_or_insert(now + limit);
        let left = deadline.saturating_duration_since(now);
        self.connection
            .handle()
            .timeout(left, future)
            .await
            .map_err(|_| {
                let limit_ms = limit.as_millis();
                warn!(peer = %self.connection.peer, limit_ms, "a frame took too long to arrive");
                io::Error::from(io::ErrorKind::TimedOut)
            })
    }

    /// Handles all frames that are whole with this chunk. `false`: the connection ends.
    async fn take(&mut self, mut chunk: Chunk) -> io::Result<bool> {
        let rest = if self.gathered.is_empty() {
            let (used, rest) = self.handle(&mut chunk);
            chunk.advance(used);
            if matches!(rest, Rest::More) {
                self.gathered.extend_from_slice(&chunk);
            }
            rest
        } else {
            self.take_gathered(&mut chunk)
        };
        match rest {
            Rest::More => Ok(true),
            Rest::End => Ok(false),
            Rest::Direct(len) => self.direct(len, chunk).await,
        }
    }

    /// The same where a frame had begun in an earlier chunk.
    fn take_gathered(&mut self, chunk: &mut Chunk) -> Rest {
        let mut gathered = std::mem::take(&mut self.gathered);
        gathered.extend_from_slice(chunk);
        chunk.advance(chunk.len());
        let (used, rest) = self.handle(&mut gathered);
        gathered.drain(..used);
        self.gathered = gathered;
        rest
    }

    /// Handles all whole frames; tells how many bytes they took.
    fn handle(&self, bytes: &mut [u8]) -> (usize, Rest) {
        let mut used = 0;
        while used < bytes.len() && !self.connection.ended.is_raised() {
            let here = &mut bytes[used..];
            match self.next(here) {
                Err(error) => {
                    self.refuse(&error, &[]);
                    return (used, Rest::End);
                }
                Ok(Next::Needs(_)) => return (used, Rest::More),
                Ok(Next::Control { consumed, answer }) => {
                    self.answer(&answer);
                    used += consumed;
                }
                Ok(Next::Refuse { answer, reason }) => {
                    self.refuse(&reason, &answer);
                    return (used, Rest::End);
                }
                Ok(Next::Message { len }) => {
                    let there = here.len();
                    let Some(message) = here.get_mut(PREFIX_LEN..PREFIX_LEN + len) else {
                        let is_long = PREFIX_LEN + len - there >= DIRECT_BYTES;
                        let rest = match is_long && self.is_logged_in() {
                            true => Rest::Direct(len),
                            false => Rest::More,
                        };
                        return (used, rest);
                    };
                    self.connection.frame(&mut Frame::Borrowed(message));
                    used += PREFIX_LEN + len;
                }
            }
        }
        let rest = if self.connection.ended.is_raised() {
            Rest::End
        } else {
            Rest::More
        };
        (used, rest)
    }

    /// Whether there is anybody to keep memory for before it is needed: strangers could have all
    /// of it by a few bytes of a large frame each.
    fn is_logged_in(&self) -> bool {
        self.connection.state.borrow().core.is_logged_in()
    }

    fn next(&self, bytes: &[u8]) -> Result<Next, FrameError> {
        let mut state = self.connection.state.borrow_mut();
        let limit = state.core.max_frame();
        state.framing.next(bytes, limit)
    }

    fn answer(&self, answer: &[u8]) {
        if !answer.is_empty() {
            self.connection.state.borrow_mut().outbox.push_raw(answer);
            self.connection.wake_sender();
        }
    }

    fn refuse(&self, reason: &FrameError, answer: &[u8]) {
        warn!(peer = %self.connection.peer, %reason, "disconnecting");
        self.answer(answer);
        self.connection.ended.raise();
    }

    /// Receives the rest of a frame of `len` bytes, whose prefix and start are in the chunk or
    /// were gathered.
    async fn direct(&mut self, len: usize, chunk: Chunk) -> io::Result<bool> {
        let pool = self.connection.handle().pool();
        // A frame is gathered, or it starts with the chunk.
        let gathered = std::mem::take(&mut self.gathered);
        let (first, second) = match gathered.is_empty() {
            true => (&chunk[..], &[][..]),
            false => (&gathered[..], &chunk[..]),
        };
        let first = (first.get(PREFIX_LEN..)).expect("a frame is known by its prefix");
        let start = match self.connection.worker.shares().is_any_direct {
            true => direct::frame_start(first, len, pool.largest()),
            false => 0,
        };
        let (filled, end) = (start + first.len() + second.len(), start + len);
        let buffer = match pool.take(end) {
            Some(mut buffer) => {
                place(&mut buffer[start..filled], first, second);
                drop((gathered, chunk));
                buffer
            }
            None => {
                // Others receive by the chunk while this one waits for memory.
                let there = [first, second].concat();
                drop((gathered, chunk));
                let mut buffer: Buffer = self.in_time(pool.take_or_wait(end)).await?;
                place(&mut buffer[start..filled], &there, &[]);
                buffer
            }
        };
        let receive = self.connection.stream.recv_into(buffer, filled..end);
        let (result, buffer) = self.in_time(receive).await?;
        result?;
        self.connection.note_received(end - filled);
        let mut frame = Frame::Owned(Some(buffer), start..end);
        self.connection.frame(&mut frame);
        Ok(!self.connection.ended.is_raised())
    }
}

/// Puts two pieces one behind the other; they fill `room`.
fn place(room: &mut [u8], first: &[u8], second: &[u8]) {
    let (start, rest) = room.split_at_mut(first.len());
    start.copy_from_slice(first);
    rest.copy_from_slice(second);
}
