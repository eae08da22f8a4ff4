//! The sending task of a connection.

use std::rc::Rc;
use std::time::{Duration, Instant};

use ring::Part;
use tracing::{debug, warn};

use super::Connection;
use crate::codes::{EndedConnection, Reason as _};
use crate::counters::Wait;
use crate::datapath::Output;

/// Bytes per second that a client must receive, on average over one send. It is slower than any
/// link that is usable for a file server.
const MIN_RATE: usize = 16 << 10;
/// Longest time for one send, however long it is: a client that receives nothing holds the memory
/// of the send for this time. It is enough for all queued responses on a link of 600 kbit/s.
const MAX_SEND_TIME: Duration = Duration::from_secs(900);

/// Shortest send, in bytes, of which the connection notes the progress from its start.
const NOTED_BYTES: usize = 256 << 10;

/// Guard of the sending task: the connection ends with it.
struct Sending(Rc<Connection>);

impl Drop for Sending {
    fn drop(&mut self) {
        let context = &self.0.context;
        context.ended.raise();
        context.released.raise();
    }
}

impl Connection {
    /// Sends queued frames, all of them at once, until the connection ends.
    pub(super) async fn send(self: Rc<Self>) {
        let _sending = Sending(Rc::clone(&self));
        loop {
            let parts = self.context.output.borrow_mut().outbox.take();
            if !parts.is_empty() {
                let Some(parts) = self.send_parts(parts).await else {
                    return;
                };
                let mut output = self.context.output.borrow_mut();
                let Output {
                    outbox, payloads, ..
                } = &mut *output;
                outbox.recycle(parts, payloads);
                drop(output);
                self.count_answers();
                self.note_idle();
                self.context.released.raise();
                continue;
            }
            if self.context.ended.is_raised() && self.pending.get() == 0 {
                return;
            }
            self.to_send.lower();
            self.to_send.raised().await;
        }
    }

    /// Notes the time if the connection has no request in progress and nothing to send.
    fn note_idle(&self) {
        let has_output = self.context.output.borrow().outbox.queued() > 0;
        if self.pending.get() == 0 && !has_output {
            self.idle_since.set(Some(Instant::now()));
        }
    }

    /// Sends the parts and returns their memory. `None` if the client is disconnected, or if it
    /// receives too slowly.
    async fn send_parts(&self, parts: Vec<Part>) -> Option<Vec<Part>> {
        let context = &self.context;
        let bytes: usize = parts.iter().map(Part::len).sum();
        let seconds = u64::try_from(bytes / MIN_RATE).unwrap_or(u64::MAX);
        let send_time = Duration::from_secs(seconds).min(MAX_SEND_TIME);
        let limit = context.worker.frame_timeout() + send_time;
        // A short send fits into the socket: it needs no system call for its progress.
        if bytes >= NOTED_BYTES {
            self.note_send();
        }
        context.sending.set(bytes);
        context.sending_in_memory.set(bytes_in_memory(&parts));
        let sending = self.handle().timeout(limit, context.stream.send(parts));
        let sent = context.waited(Wait::Send, sending).await;
        context.sending.set(0);
        context.sending_in_memory.set(0);
        let peer = self.peer();
        match sent {
            Ok((Ok(()), parts)) => {
                self.sent.set(self.sent.get() + bytes as u64);
                context.worker.counters.sent.add(bytes as u64);
                Some(parts)
            }
            Ok((Err(error), _)) => {
                debug!(%peer, %error, "sending failed");
                None
            }
            Err(_) => {
                let limit_s = limit.as_secs();
                let code = EndedConnection::SlowReceiver.code();
                warn!(%peer, bytes, limit_s, code, "disconnecting: the client receives too slowly");
                None
            }
        }
    }
}

fn bytes_in_memory(parts: &[Part]) -> usize {
    let in_memory = parts.iter().filter(|part| matches!(part, Part::Bytes(_)));
    in_memory.map(Part::len).sum()
}
