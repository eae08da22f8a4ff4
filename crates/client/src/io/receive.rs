//! The receive loop of a channel: from the bytes of a stream to frames for the core.
//!
//! The core handles a small frame in the receive buffer. The data of an unencrypted READ response
//! are received straight into the caller's memory, except for the bytes that arrive with the
//! header. The rest of any other large frame is received into a separate buffer, which a caller
//! that accepts any memory may take.

use std::io;
use std::ops::Range;
use std::rc::Rc;

use net::{FrameError, FrameHandler, Next, Partial, Received, Receiver};
use proto::client::{Connection, Expect, RequestId};
use ring::{Buffer, Region};
use wire::header::HEADER_LEN;

use crate::io::channel::Channel;

/// Length in bytes from which the rest of a frame is received into a separate buffer.
const DIRECT_BYTES: usize = 32 << 10;
/// Largest receive in bytes, so that a long frame on a slow line counts as a sign of life. At 128
/// KiB a second it takes half of the default time limit of a silent server.
const STEP_BYTES: usize = 4 << 20;
/// Length in bytes of the start of a message that determines where its rest belongs: the header and
/// the fixed part of a READ response. \[MS-SMB2\] 2.2.20
const EXPECT_BYTES: usize = HEADER_LEN + 16;

/// Where the rest of a frame is received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    /// A separate buffer.
    Buffer,
    /// The memory of a request, for the `len` bytes behind the first `head` bytes of the message.
    Request {
        head: usize,
        request: RequestId,
        len: usize,
    },
}

impl Channel {
    /// Serves the channel until its connection has ended and the server uses none of its memory.
    pub(crate) async fn serve(self: &Rc<Self>) {
        let sender = self.io().spawn(Rc::clone(self).send());
        if self.has_keep_alives() {
            self.io().spawn(Rc::clone(self).keep_alive());
        }
        self.with_core(Connection::start);
        if let Err(error) = frames(self).await {
            self.fail(error);
        }
        self.end();
        let _ = sender.await;
        self.with_core(Connection::closed);
        self.all_memory_released().await;
    }
}

/// Receives frames until the connection ends.
async fn frames(channel: &Rc<Channel>) -> io::Result<()> {
    let mut receiver = Receiver::default();
    while !channel.ended.is_raised() {
        let chunk = channel.stream.recv().await?;
        channel.note_received(chunk.len());
        if chunk.is_empty() {
            return Ok(());
        }
        match receiver.take(channel, chunk) {
            Received::Continue => {}
            Received::Partial(partial) => channel.receive_rest(partial).await?,
            Received::Paused(_) => unreachable!("a client admits every message"),
            Received::Ended => return Ok(()),
        }
    }
    Ok(())
}

impl FrameHandler for Channel {
    type Destination = Destination;

    fn parse(&self, bytes: &[u8]) -> Result<Next, FrameError> {
        let mut state = self.state.borrow_mut();
        let limit = state.core.max_frame();
        state.framing.next(bytes, limit)
    }

    fn frame(self: &Rc<Self>, message: &mut [u8]) {
        self.handle_frame(message);
    }

    fn expect(&self, start: &[u8], message_len: usize) -> Option<Destination> {
        if start.len() < EXPECT_BYTES {
            return None;
        }
        match self.expected(start, message_len) {
            Expect::Split {
                head,
                request,
                len: data,
            } if head <= start.len() && head + data as usize == message_len => {
                Some(Destination::Request {
                    head,
                    request,
                    len: data as usize,
                })
            }
            Expect::Split { .. } | Expect::Frame => {
                (message_len - start.len() >= DIRECT_BYTES).then_some(Destination::Buffer)
            }
        }
    }

    fn control(&self, answer: &[u8]) {
        self.answer_raw(answer);
    }

    /// A client sends no answer to an invalid stream.
    fn refuse(&self, reason: &FrameError, _answer: &[u8]) {
        self.fail(io::Error::new(io::ErrorKind::InvalidData, reason.clone()));
    }

    fn has_ended(&self) -> bool {
        self.ended.is_raised()
    }
}

/// Frames with a destination of its own for the rest.
impl Channel {
    async fn receive_rest(self: &Rc<Self>, partial: Partial<Destination>) -> io::Result<()> {
        let (destination, len) = (partial.destination, partial.message_len);
        let start = partial.into_start();
        match destination {
            Destination::Buffer => self.receive_into_buffer(start, len).await,
            Destination::Request { head, request, len } => {
                self.receive_into_request(start, head, request, len).await
            }
        }
    }

    /// Receives the rest of a message of `len` bytes.
    async fn receive_into_buffer(self: &Rc<Self>, start: Vec<u8>, len: usize) -> io::Result<()> {
        let pool = self.io().pool();
        if len > pool.largest() {
            return Err(io::Error::other("a frame is larger than any buffer"));
        }
        let mut buffer: Buffer = pool.take_or_wait(len).await;
        buffer[..start.len()].copy_from_slice(&start);
        for step in steps(start.len()..len) {
            let (result, back) = self.stream.recv_into(buffer, step.clone()).await;
            buffer = back;
            result?;
            self.note_received(step.len());
        }
        self.buffered_frame(buffer, len);
        Ok(())
    }

    /// Receives the rest of a message of `head + len` bytes into the memory of a request.
    async fn receive_into_request(
        self: &Rc<Self>,
        mut start: Vec<u8>,
        head: usize,
        request: RequestId,
        len: usize,
    ) -> io::Result<()> {
        let Some(mut region) = self.destination(request) else {
            return self.receive_into_buffer(start, head + len).await;
        };
        assert!(
            len <= region.len(),
            "a response has at most the requested bytes"
        );
        let received = start.len() - head;
        region[..received].copy_from_slice(&start[head..]);
        let region = match self.fill(region, received, len).await {
            Ok(region) => region,
            Err((error, region)) => {
                self.misplaced(request, region);
                return Err(error);
            }
        };
        self.split_frame(&mut start[..head], request, region, len);
        Ok(())
    }

    async fn fill(
        &self,
        mut region: Region,
        received: usize,
        len: usize,
    ) -> Result<Region, (io::Error, Region)> {
        for step in steps(received..len) {
            let receive = self.stream.recv_into_region(region, step.clone());
            let (result, back) = receive.await;
            region = back;
            if let Err(error) = result {
                return Err((error, region));
            }
            self.note_received(step.len());
        }
        Ok(region)
    }
}

/// Splits a range into receives.
fn steps(range: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let end = range.end;
    range
        .step_by(STEP_BYTES)
        .map(move |start| start..end.min(start + STEP_BYTES))
}
