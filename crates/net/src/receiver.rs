//! The receive loop that server and client share: bytes of a stream become frames.
//!
//! [`Receiver::take`] handles complete frames inside the received chunk and copies only an
//! incomplete start. The driver receives the rest of a large frame directly into its destination.

use std::rc::Rc;

use ring::Chunk;

use crate::framing::{FrameError, Next, PREFIX_LEN};

/// The owner of one transport connection: a [`Receiver`] passes the received frames of the
/// connection to it. The connections of the server and of the client implement it.
///
/// The methods take `&Rc<Self>` where they may start tasks that keep the connection alive.
pub trait FrameHandler {
    /// Memory that receives the rest of a long frame directly, with the data that the driver needs
    /// to complete the frame.
    type Destination;

    /// Parses the start of `bytes` with the [`Framing`](crate::Framing) of the connection and the
    /// current length limit of its core.
    ///
    /// # Errors
    /// The bytes are not a frame of this transport, or the frame is too long.
    fn parse(&self, bytes: &[u8]) -> Result<Next, FrameError>;

    /// Handles a complete message, without its prefix. The handler may change the bytes, for
    /// example to decrypt them; they are invalid after the call.
    fn frame(self: &Rc<Self>, message: &mut [u8]);

    /// Returns whether the handler handles this message now, a complete one or the start of one,
    /// without its prefix. Otherwise [`Receiver::take`] returns [`Received::Paused`].
    fn admits(&self, message: &[u8]) -> bool {
        let _ = message;
        true
    }

    /// Chooses the destination for the rest of a message of `message_len` bytes that starts with
    /// `start`. `None` makes the receiver gather the message in its own memory.
    ///
    /// `start` excludes the prefix, may be empty, and is shorter than `message_len`.
    fn expect(&self, start: &[u8], message_len: usize) -> Option<Self::Destination>;

    /// Sends `answer` to the peer, which sent a control message of the transport. The answer may be
    /// empty.
    fn control(&self, answer: &[u8]);

    /// Logs `reason`, for which the stream is invalid, and sends `answer` to the peer. The answer
    /// may be empty. The receiver then returns [`Received::Ended`].
    fn refuse(&self, reason: &FrameError, answer: &[u8]);

    /// Returns whether the connection has ended. If so, the receiver drops the remaining bytes.
    fn has_ended(&self) -> bool;
}

/// Result of [`Receiver::take`]: the next action of the driver, the task that receives the bytes of
/// the connection.
#[derive(Debug)]
pub enum Received<D> {
    /// The driver receives the next chunk.
    Continue,
    /// The driver receives the rest of a frame into its destination, and then handles the frame.
    Partial(Partial<D>),
    /// The handler does not admit the first message in these bytes. The driver calls
    /// [`Receiver::take`] with them again when the handler admits it.
    Paused(Chunk),
    /// The driver stops: the connection has ended, or the bytes of its stream are not valid.
    Ended,
}

/// The received start of a frame. The driver (the task that receives for the connection) receives
/// the rest of the frame into a destination that [`FrameHandler::expect`] has chosen.
///
/// The next chunk that the driver passes to the [`Receiver`] starts a new frame.
#[derive(Debug)]
pub struct Partial<D> {
    /// Memory that receives the rest of the message, as [`FrameHandler::expect`] returned it.
    pub destination: D,
    /// Length of the whole message in bytes, without its prefix.
    pub message_len: usize,
    /// Start of the frame from earlier chunks, with the prefix; empty if the chunk has the prefix.
    gathered: Vec<u8>,
    /// Remaining bytes of the last chunk. It is empty if `gathered` has everything.
    chunk: Chunk,
}

impl<D> Partial<D> {
    /// Returns the received start of the message, without its prefix.
    #[must_use]
    pub fn start(&self) -> &[u8] {
        let frame = match self.gathered.is_empty() {
            true => &self.chunk[..],
            false => &self.gathered[..],
        };
        frame
            .get(PREFIX_LEN..)
            .expect("a frame of known length has a prefix")
    }

    /// Returns a copy of the [`start`](Self::start) of the message and gives the memory of the
    /// received chunk back to the runtime. A task that waits for the rest of the frame then does
    /// not hold a chunk.
    #[must_use]
    pub fn into_start(mut self) -> Vec<u8> {
        if self.gathered.is_empty() {
            return self.start().to_vec();
        }
        self.gathered.drain(..PREFIX_LEN);
        self.gathered
    }
}

/// Parser that cuts the received bytes of one stream into frames. It stores the start of an
/// incomplete frame between two chunks.
#[derive(Debug, Default)]
pub struct Receiver {
    /// The received start of an incomplete frame, with its prefix.
    gathered: Vec<u8>,
}

/// How [`Receiver::take`] ended.
enum Rest<D> {
    /// No bytes are left, or the start of a frame that needs more bytes.
    Incomplete,
    /// The start of a frame of `message_len` bytes with its own destination.
    Expected { destination: D, message_len: usize },
    /// The handler does not admit the next message.
    Paused,
    /// The connection has ended.
    Ended,
}

impl Receiver {
    /// Returns whether the receiver holds the start of an incomplete frame. A time limit for each
    /// frame starts when this becomes true.
    #[must_use]
    pub fn is_inside_frame(&self) -> bool {
        !self.gathered.is_empty()
    }

    /// Returns the capacity in bytes of the buffer that gathers the start of an incomplete frame.
    /// The buffer can stay allocated between frames.
    #[must_use]
    pub fn gathered_capacity(&self) -> usize {
        self.gathered.capacity()
    }

    /// Passes all frames that `chunk` completes to `handler`. Stores the start of an incomplete
    /// frame for the next call. The driver (the task that receives for the connection) calls this
    /// with each received chunk that is not empty, and does the returned action.
    pub fn take<H: FrameHandler>(
        &mut self,
        handler: &Rc<H>,
        mut chunk: Chunk,
    ) -> Received<H::Destination> {
        let rest = match self.gathered.is_empty() {
            true => self.take_chunk(handler, &mut chunk),
            false => self.take_gathered(handler, &mut chunk),
        };
        match rest {
            Rest::Incomplete => Received::Continue,
            Rest::Ended => Received::Ended,
            Rest::Paused if self.gathered.is_empty() => Received::Paused(chunk),
            Rest::Paused => Received::Paused(Chunk::from(std::mem::take(&mut self.gathered))),
            Rest::Expected {
                destination,
                message_len,
            } => Received::Partial(Partial {
                destination,
                message_len,
                gathered: std::mem::take(&mut self.gathered),
                chunk,
            }),
        }
    }

    /// Handles frames inside the chunk. Only an incomplete last frame is copied.
    fn take_chunk<H: FrameHandler>(
        &mut self,
        handler: &Rc<H>,
        chunk: &mut Chunk,
    ) -> Rest<H::Destination> {
        let (used, rest) = handle(handler, chunk);
        chunk.advance(used);
        if matches!(rest, Rest::Incomplete) {
            self.gathered.extend_from_slice(chunk);
        }
        rest
    }

    /// Handles frames of which the first began in an earlier chunk. The chunk becomes empty.
    fn take_gathered<H: FrameHandler>(
        &mut self,
        handler: &Rc<H>,
        chunk: &mut Chunk,
    ) -> Rest<H::Destination> {
        self.gathered.extend_from_slice(chunk);
        chunk.advance(chunk.len());
        let (used, rest) = handle(handler, &mut self.gathered);
        self.gathered.drain(..used);
        rest
    }
}

/// Handles all complete frames in `bytes`. Returns the number of handled bytes.
fn handle<H: FrameHandler>(handler: &Rc<H>, bytes: &mut [u8]) -> (usize, Rest<H::Destination>) {
    let mut used = 0;
    while used < bytes.len() && !handler.has_ended() {
        let left = &mut bytes[used..];
        match handler.parse(left) {
            Err(reason) => {
                handler.refuse(&reason, &[]);
                return (used, Rest::Ended);
            }
            Ok(Next::Refuse { answer, reason }) => {
                handler.refuse(&reason, &answer);
                return (used, Rest::Ended);
            }
            Ok(Next::Needs(_)) => return (used, Rest::Incomplete),
            Ok(Next::Control { consumed, answer }) => {
                handler.control(&answer);
                used += consumed;
            }
            Ok(Next::Message { len }) => {
                let message = &mut left[PREFIX_LEN..];
                let is_whole = message.len() >= len;
                let message = match is_whole {
                    true => &mut message[..len],
                    false => message,
                };
                if !handler.admits(message) {
                    return (used, Rest::Paused);
                }
                if !is_whole {
                    return (used, expect(handler, message, len));
                }
                handler.frame(message);
                used += PREFIX_LEN + len;
            }
        }
    }
    match handler.has_ended() {
        true => (used, Rest::Ended),
        false => (used, Rest::Incomplete),
    }
}

fn expect<H: FrameHandler>(
    handler: &Rc<H>,
    start: &[u8],
    message_len: usize,
) -> Rest<H::Destination> {
    match handler.expect(start, message_len) {
        Some(destination) => Rest::Expected {
            destination,
            message_len,
        },
        None => Rest::Incomplete,
    }
}

#[cfg(test)]
mod tests;
