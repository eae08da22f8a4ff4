//! Memory of the responses of a connection, and the pause of a connection with too much of it.
//!
//! A paused connection handles no further requests, so a client that does not receive its responses
//! cannot make the server build more of them. It continues when responses are sent. Data of READs
//! in pool buffers have separate quotas, see `datapath/answer_quota.rs`.

use std::time::Duration;

use proto::server::ledger::Shortage;
use wire::{Command, Header};

use super::Connection;

/// Most bytes of responses of one connection before it pauses: more than clients request at a time.
const MAX_BYTES: usize = 16 << 20;
/// Bytes of responses below which a connection does not count in the ledger: usual requests do not
/// touch the sums that all workers share.
const UNCOUNTED_BYTES: usize = 16 << 10;
/// Most bytes of queued frames, with the data of READs, before the connection pauses: four of the
/// largest responses.
const MAX_QUEUED: usize = 32 << 20;
/// Time between two checks of a connection that waits for memory of others.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

impl Connection {
    /// Updates the sum of the responses. Called after each call of the core and after each send.
    pub(super) fn count_answers(&self) {
        let context = &self.context;
        let pending = self.state.borrow().core.pending_response_bytes();
        let queued = context.output.borrow().outbox.queued_in_memory();
        let sum = pending + queued + context.sending_in_memory.get();
        let before = self.answers.replace(sum);
        let counted = if sum < UNCOUNTED_BYTES { 0 } else { sum };
        if let Some(charge) = &mut *context.answers.borrow_mut()
            && charge.amount() != counted
        {
            charge.set(counted);
        }
        if sum < before && self.is_paused.get() {
            context.released.raise();
        }
    }

    /// Returns whether the connection may handle a further request.
    pub(super) fn may_handle(&self) -> bool {
        !self.exceeds_own_limits() && self.has_share()
    }

    fn exceeds_own_limits(&self) -> bool {
        self.answers.get() >= MAX_BYTES || self.context.output.borrow().outbox.queued() > MAX_QUEUED
    }

    /// A connection without responses may always have one, unless the memory is used up.
    fn has_share(&self) -> bool {
        let answers = self.context.answers.borrow();
        // Without a login, `limits.half_open_memory_mb` counts.
        let Some(charge) = &*answers else { return true };
        let ledger = self.context.worker.shared.core.ledger();
        match charge.amount() {
            0 if self.answers.get() == 0 => !ledger.is_response_memory_full(),
            0 => !ledger.is_response_memory_full() && !ledger.is_short(Shortage::Responses),
            _ => charge.user().has_response_share() && !ledger.is_short(Shortage::Responses),
        }
    }

    /// Returns whether the connection may handle this message now. A CANCEL needs no memory: it has
    /// no response, and it ends another request.
    pub(super) fn admits(&self, message: &[u8]) -> bool {
        self.may_handle() || is_cancel(message)
    }

    /// Waits until the connection may handle a further request, or ends.
    pub(super) async fn resumed(&self) {
        let context = &self.context;
        while !self.may_handle() && !context.ended.is_raised() {
            self.is_paused.set(true);
            if self.exceeds_own_limits() {
                context.released().await;
            } else {
                let _ = (self.handle())
                    .timeout(CHECK_INTERVAL, context.released())
                    .await;
            }
        }
        self.is_paused.set(false);
    }
}

/// Returns whether a message is a CANCEL that is not encrypted. \[MS-SMB2\] 2.2.30
fn is_cancel(message: &[u8]) -> bool {
    Header::decode(message).is_ok_and(|header| header.command == Command::CANCEL)
}
