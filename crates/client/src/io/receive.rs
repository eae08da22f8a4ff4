//! The receive loop of a channel: from the bytes of a stream to frames for the core.
//!
//! The core handles a small frame in the receive buffer. The data of an unencrypted READ response
//! are received straight into the caller's memory, except for the bytes that arrive with the
//! header. The rest of any other large frame is received into a separate buffer, which a caller
//! that accepts any memory may take.

use std::io;
use std::ops::Range;
use std::rc::Rc;

use net::{FrameError, Next, PREFIX_LEN};
use proto::client::{Connection, Expect, RequestId};
use ring::{Buffer, Chunk, Region};
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

impl Channel {
    /// Serves the channel until its connection has ended and the server uses none of its memory.
    pub(crate) async fn serve(self: &Rc<Self>) {
        let sender = self.io().spawn(Rc::clone(self).send());
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
    let mut receiver = Receiver {
        channel,
        gathered: Vec::new(),
    };
    loop {
        let chunk = channel.stream.recv().await?;
        channel.note_received(chunk.len());
        if chunk.is_empty() || !receiver.take(chunk).await? {
            return Ok(());
        }
    }
}

struct Receiver<'a> {
    channel: &'a Rc<Channel>,
    /// Start of a frame whose rest has not arrived.
    gathered: Vec<u8>,
}

/// The next step after all complete frames are handled.
#[derive(Debug)]
enum Rest {
    /// Receive more bytes.
    More,
    /// Receive the rest of a frame of this length in bytes into a separate buffer.
    Direct(usize),
    /// Receive the rest of a frame into the memory of a request: `len` bytes behind the `head`.
    Split {
        head: usize,
        request: RequestId,
        len: usize,
    },
    /// The connection ends.
    End,
}

impl Receiver<'_> {
    /// Handles the frames that this chunk completes. Returns `false` if the connection ends.
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
            Rest::Split { head, request, len } => self.split(head, request, len, chunk).await,
        }
    }

    /// Handles the frames that this chunk completes if the first one started in an earlier chunk.
    fn take_gathered(&mut self, chunk: &mut Chunk) -> Rest {
        let mut gathered = std::mem::take(&mut self.gathered);
        gathered.extend_from_slice(chunk);
        chunk.advance(chunk.len());
        let (used, rest) = self.handle(&mut gathered);
        gathered.drain(..used);
        self.gathered = gathered;
        rest
    }

    /// Handles all complete frames. Returns the count of their bytes.
    fn handle(&self, bytes: &mut [u8]) -> (usize, Rest) {
        let mut used = 0;
        while used < bytes.len() && !self.channel.ended.is_raised() {
            let here = &mut bytes[used..];
            match self.next(here) {
                Err(error) => return (used, self.refuse(&error)),
                Ok(Next::Needs(_)) => return (used, Rest::More),
                Ok(Next::Control { consumed, answer }) => {
                    self.channel.answer_raw(&answer);
                    used += consumed;
                }
                Ok(Next::Refuse { reason, .. }) => return (used, self.refuse(&reason)),
                Ok(Next::Message { len }) => match here.get_mut(PREFIX_LEN..PREFIX_LEN + len) {
                    None => return (used, self.rest(&here[PREFIX_LEN..], len)),
                    Some(message) => {
                        self.channel.frame(message);
                        used += PREFIX_LEN + len;
                    }
                },
            }
        }
        let rest = if self.channel.ended.is_raised() {
            Rest::End
        } else {
            Rest::More
        };
        (used, rest)
    }

    fn next(&self, bytes: &[u8]) -> Result<Next, FrameError> {
        let mut state = self.channel.state.borrow_mut();
        let limit = state.core.max_frame();
        state.framing.next(bytes, limit)
    }

    fn refuse(&self, reason: &FrameError) -> Rest {
        tracing::warn!(%reason, "disconnecting");
        Rest::End
    }

    /// Determines where the rest of a frame belongs from its `start`.
    fn rest(&self, start: &[u8], len: usize) -> Rest {
        if start.len() < EXPECT_BYTES {
            return Rest::More;
        }
        match self.channel.expect(start, len) {
            Expect::Split {
                head,
                request,
                len: data,
            } if head <= start.len() && head + data as usize == len => Rest::Split {
                head,
                request,
                len: data as usize,
            },
            Expect::Split { .. } | Expect::Frame if len - start.len() >= DIRECT_BYTES => {
                Rest::Direct(len)
            }
            Expect::Split { .. } | Expect::Frame => Rest::More,
        }
    }

    /// Takes the received bytes of a frame, without its prefix.
    fn start(&mut self, chunk: &Chunk) -> Vec<u8> {
        let mut start = std::mem::take(&mut self.gathered);
        start.extend_from_slice(chunk);
        start.drain(..PREFIX_LEN);
        start
    }

    /// Receives the rest of a frame of `len` bytes.
    async fn direct(&mut self, len: usize, chunk: Chunk) -> io::Result<bool> {
        let start = self.start(&chunk);
        drop(chunk);
        let pool = self.channel.io().pool();
        if len > pool.largest() {
            return Err(io::Error::other("a frame is larger than any buffer"));
        }
        let mut buffer: Buffer = pool.take_or_wait(len).await;
        buffer[..start.len()].copy_from_slice(&start);
        for step in steps(start.len()..len) {
            let (result, back) = self.channel.stream.recv_into(buffer, step.clone()).await;
            buffer = back;
            result?;
            self.channel.note_received(step.len());
        }
        self.channel.buffered_frame(buffer, len);
        Ok(!self.channel.ended.is_raised())
    }

    /// Receives the rest of a frame of `head + len` bytes into the memory of a request.
    async fn split(
        &mut self,
        head: usize,
        request: RequestId,
        len: usize,
        chunk: Chunk,
    ) -> io::Result<bool> {
        let Some(mut region) = self.channel.destination(request) else {
            return self.direct(head + len, chunk).await;
        };
        let mut start = self.start(&chunk);
        drop(chunk);
        assert!(
            len <= region.len(),
            "a response has at most the requested bytes"
        );
        let received = start.len() - head;
        region[..received].copy_from_slice(&start[head..]);
        let region = match self.fill(region, received, len).await {
            Ok(region) => region,
            Err((error, region)) => {
                self.channel.misplaced(request, region);
                return Err(error);
            }
        };
        self.channel
            .split_frame(&mut start[..head], request, region, len);
        Ok(!self.channel.ended.is_raised())
    }

    async fn fill(
        &self,
        mut region: Region,
        received: usize,
        len: usize,
    ) -> Result<Region, (io::Error, Region)> {
        for step in steps(received..len) {
            let receive = (self.channel.stream).recv_into_region(region, step.clone());
            let (result, back) = receive.await;
            region = back;
            if let Err(error) = result {
                return Err((error, region));
            }
            self.channel.note_received(step.len());
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
