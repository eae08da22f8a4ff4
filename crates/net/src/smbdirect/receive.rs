//! What was received, as a stream of frames behind their prefixes.

use std::io;
use std::ops::Range;

use ring::{Buffer, Chunk, Region};

use crate::smbdirect::Stream;
use crate::smbdirect::driver::{Shared, State};

impl Stream {
    /// The next bytes; an empty chunk means that the connection has ended.
    pub(crate) async fn recv(&self) -> io::Result<Chunk> {
        let shared = self.shared();
        loop {
            let next = shared.state.borrow_mut().take_chunk();
            if let Some(chunk) = next {
                shared.changed();
                return Ok(chunk);
            }
            let end = shared.state.borrow().end_of_stream();
            if let Some(end) = end {
                return end.map(|()| Chunk::from(Vec::new()));
            }
            shared.readable.lower();
            shared.readable.raised().await;
        }
    }

    /// Fills `range` of `buffer` with the next bytes.
    pub(crate) async fn recv_into(
        &self,
        mut buffer: Buffer,
        range: Range<usize>,
    ) -> (io::Result<()>, Buffer) {
        let result = self.fill(&mut buffer[range]).await;
        (result, buffer)
    }

    /// Fills `range` of `region` with the next bytes.
    pub(crate) async fn recv_into_region(
        &self,
        mut region: Region,
        range: Range<usize>,
    ) -> (io::Result<()>, Region) {
        let result = self.fill(&mut region[range]).await;
        (result, region)
    }

    async fn fill(&self, target: &mut [u8]) -> io::Result<()> {
        let shared = self.shared();
        let mut tear = Tear {
            shared,
            is_done: false,
        };
        let mut done = 0;
        while done < target.len() {
            let count = shared.state.borrow_mut().take_into(&mut target[done..]);
            done += count;
            if count > 0 {
                shared.changed();
                continue;
            }
            let end = shared.state.borrow().end_of_stream();
            if let Some(end) = end {
                tear.is_done = true;
                return end.and_then(|()| Err(io::ErrorKind::UnexpectedEof.into()));
            }
            shared.readable.lower();
            shared.readable.raised().await;
        }
        tear.is_done = true;
        Ok(())
    }
}

/// Ends the connection when a frame is received only in part.
struct Tear<'a> {
    shared: &'a Shared,
    is_done: bool,
}

impl Drop for Tear<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            self.shared.disconnect();
        }
    }
}

impl State {
    fn take_chunk(&mut self) -> Option<Chunk> {
        let bytes = self.unread.pop_front()?;
        let start = std::mem::take(&mut self.unread_start);
        self.taken(bytes.len() - start);
        let mut chunk = Chunk::from(bytes);
        chunk.advance(start);
        Some(chunk)
    }

    fn take_into(&mut self, target: &mut [u8]) -> usize {
        let Some(first) = self.unread.front() else {
            return 0;
        };
        let there = &first[self.unread_start..];
        let count = there.len().min(target.len());
        target[..count].copy_from_slice(&there[..count]);
        if count == there.len() {
            self.unread.pop_front();
            self.unread_start = 0;
        } else {
            self.unread_start += count;
        }
        self.taken(count);
        count
    }

    /// There is room for more.
    fn taken(&mut self, count: usize) {
        self.unread_bytes -= count;
        self.post_receives();
        self.pump();
    }
}
