//! Sending. \[MS-SMBD\] 3.1.5.1

use wire::smbd::{DataTransfer, TransferFlags};

use super::connection::{Connection, Phase};
use super::effect::{Effect, Effects, Header, Outgoing, Piece};
use super::timers::KeepAlive;
use crate::time::Instant;

impl Connection {
    /// Sends everything that the credits allow.
    pub(super) fn pump(&mut self, now: Instant, effects: &mut Effects) {
        if self.phase != Phase::Ready {
            return;
        }
        let depth = usize::from(self.config.send_depth);
        while self.has_message() && self.credits.can_send() && self.queue.in_flight() < depth {
            self.send_next(now, effects);
        }
        // A last credit that is held back waits for local receives, not for the peer.
        let is_waiting = self.queue.len() > 0 && self.credits.held() == 0;
        self.timers.wait(is_waiting, now, &self.config);
    }

    /// Whether a message is necessary, at least an empty one.
    fn has_message(&self) -> bool {
        self.queue.len() > 0
            || self.is_reply_owed
            || self.timers.keep_alive == KeepAlive::Pending
            || self.credits.owes()
    }

    /// Sends the next piece of data, or an empty message.
    fn send_next(&mut self, now: Instant, effects: &mut Effects) {
        let credits_granted = self.credits.spend();
        let flags = match self.timers.ask(now, &self.config) {
            true => TransferFlags::RESPONSE_REQUESTED,
            false => TransferFlags::NONE,
        };
        // Any message answers the peer's keep-alive, and an answer does not request an answer. By
        // the text of [MS-SMBD] 3.1.5.8 two peers would never stop.
        self.is_reply_owed = false;
        let limit = self.sizes.max_send_size - DataTransfer::DATA_OFFSET;
        let fragment = self.queue.cut(limit);
        let (length, remaining) = fragment.as_ref().map_or((0, 0), |fragment| {
            (
                fragment.range.end - fragment.range.start,
                fragment.remaining,
            )
        });
        let transfer = DataTransfer {
            credits_requested: self.config.send_credit_target,
            credits_granted,
            flags,
            remaining_data_length: remaining,
            data_offset: if length > 0 {
                DataTransfer::DATA_OFFSET
            } else {
                0
            },
            data_length: length,
        };
        let header = Header::new(&mut self.scratch, |header| {
            transfer.encode(header);
            if length > 0 {
                header.resize(DataTransfer::DATA_OFFSET as usize, 0);
            }
        });
        let ends = fragment.as_ref().filter(|fragment| fragment.remaining == 0);
        let id = self.queue.post(ends.map(|fragment| fragment.token));
        let invalidate = fragment.as_ref().and_then(|fragment| fragment.invalidate);
        let piece = fragment.map(|fragment| Piece {
            token: fragment.token,
            range: fragment.range,
        });
        effects.push(Effect::Send(Outgoing {
            id,
            header,
            piece,
            invalidate,
        }));
    }
}
