//! Memory that a connection holds while others wait for it.

use std::net::Shutdown;
use std::time::{Duration, Instant};

use tracing::warn;

use super::Connection;
use crate::codes::{EndedConnection, Reason as _};

/// Time without progress of the peer, after which its connection may end.
const STALL_TIME: Duration = Duration::from_secs(3);
/// Bytes per second that count as progress of a send: slower than any link that is usable for a
/// file server.
const MIN_RATE: u64 = 16 << 10;
/// Time without progress after which an arriving frame gives its buffer back.
const ARRIVAL_TIME: Duration = Duration::from_millis(250);

impl Connection {
    /// Asks the arriving frame for its buffer, if the peer is silent.
    pub(crate) fn reclaim_frame(&self, now: Instant) {
        let context = &self.context;
        let since = context.arriving.get();
        let is_silent = |since| now.saturating_duration_since(since) >= ARRIVAL_TIME;
        if since.is_some_and(is_silent) {
            context.give_back.raise();
        }
    }

    /// Bytes of pool buffers and responses of the connection, if its peer makes no progress: it
    /// does not receive its responses, or does not send the rest of a frame. The worker calls this
    /// regularly.
    pub(crate) fn stalled_bytes(&self, now: Instant) -> Option<usize> {
        let context = &self.context;
        let is_stalled = match context.arriving.get() {
            Some(since) => now.saturating_duration_since(since) >= STALL_TIME,
            None => self.is_send_stalled(now),
        };
        is_stalled.then(|| context.holder.bytes() + self.answers.get())
    }

    fn is_send_stalled(&self, now: Instant) -> bool {
        let context = &self.context;
        let (before, since) = self.progress.get();
        if context.sending.get() == 0 {
            self.progress.set((before, now));
            return false;
        }
        let elapsed = now.saturating_duration_since(since);
        let Some(taken) = context.stream.acknowledged() else {
            // Other transports do not report progress: the whole send counts.
            let seconds = context.sending.get() as u64 / (16 * MIN_RATE);
            return elapsed >= STALL_TIME + Duration::from_secs(seconds);
        };
        if elapsed < STALL_TIME {
            return false;
        }
        let is_stalled = taken.saturating_sub(before) < MIN_RATE * elapsed.as_secs();
        if !is_stalled {
            self.progress.set((taken, now));
        }
        is_stalled
    }

    /// Notes the start of a send.
    pub(super) fn note_send(&self) {
        let taken = self.context.stream.acknowledged().unwrap_or(0);
        self.progress.set((taken, Instant::now()));
    }

    /// The user of the connection, as the pool knows it.
    pub(crate) fn group(&self) -> u64 {
        self.context.source.get().group
    }

    /// Ends the connection at once, without its queued responses.
    pub(crate) fn reclaim(&self, held_bytes: usize) {
        let stall_s = STALL_TIME.as_secs();
        warn!(
            peer = %self.peer(),
            held_bytes,
            stall_s,
            code = EndedConnection::NoProgress.code(),
            "disconnecting: the client makes no progress while others wait for its memory"
        );
        self.context.ended.raise();
        // The running send fails and releases its buffers.
        let _ = self.context.stream.shutdown(Shutdown::Both);
    }
}
