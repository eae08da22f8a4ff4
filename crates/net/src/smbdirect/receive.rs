//! Receiving: messages as a stream of frames with prefixes.

use std::io;
use std::ops::{DerefMut, Range};

use ring::Chunk;

use crate::smbdirect::Stream;
use crate::smbdirect::driver::{State, TornGuard};

impl Stream {
    /// Returns the next bytes. An empty chunk means that the connection has ended.
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

    /// Fills `range` of memory with the next bytes.
    pub(crate) async fn recv_into<M: DerefMut<Target = [u8]>>(
        &self,
        mut memory: M,
        range: Range<usize>,
    ) -> (io::Result<()>, M) {
        let result = self.fill(&mut memory[range]).await;
        (result, memory)
    }

    async fn fill(&self, target: &mut [u8]) -> io::Result<()> {
        let shared = self.shared();
        let guard = TornGuard::new(shared);
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
                guard.complete();
                return end.and_then(|()| Err(io::ErrorKind::UnexpectedEof.into()));
            }
            shared.readable.lower();
            shared.readable.raised().await;
        }
        guard.complete();
        Ok(())
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

    /// Removes read bytes, which makes space for more receives.
    fn taken(&mut self, count: usize) {
        self.unread_bytes -= count;
        self.post_receives();
        self.pump();
    }
}
