//! The queue of outgoing messages and their fragmentation. \[MS-SMBD\] 3.1.4.2, 3.1.5.1

use alloc::collections::VecDeque;
use core::ops::Range;

use super::effect::{MessageToken, SendId};

/// A message to send.
#[derive(Clone, Copy, Debug)]
struct Message {
    token: MessageToken,
    /// Length in bytes; not 0.
    length: u32,
    /// Bytes sent so far.
    sent: u32,
    invalidate: Option<u32>,
}

/// The next fragment of the first message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fragment {
    pub(super) token: MessageToken,
    /// The range of the message's bytes.
    pub(super) range: Range<u32>,
    /// Bytes of the message that follow in later fragments.
    pub(super) remaining: u32,
    /// Key that the SEND invalidates. Only the last fragment of a message has one, so that the peer
    /// has the whole message when its key becomes invalid. Linux invalidates with the first
    /// fragment.
    pub(super) invalidate: Option<u32>,
}

/// Outgoing messages in order, and the SENDs without a completion.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    waiting: VecDeque<Message>,
    /// Unsent bytes of the queued messages.
    bytes: u64,
    /// The posted SENDs, each with the message that it ends, if any.
    posted: VecDeque<Option<MessageToken>>,
    /// Number of completed SENDs.
    completed: u64,
}

impl Queue {
    /// Number of queued messages, including a partly sent one.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Number of unsent bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Number of SENDs that are posted and not completed.
    pub(super) fn in_flight(&self) -> usize {
        self.posted.len()
    }

    /// Appends a message.
    pub(super) fn push(&mut self, token: MessageToken, length: u32, invalidate: Option<u32>) {
        assert!(length > 0, "a message has bytes");
        self.bytes += u64::from(length);
        self.waiting.push_back(Message {
            token,
            length,
            sent: 0,
            invalidate,
        });
    }

    /// Cuts off the next fragment of at most `limit` bytes. The caller sends it now.
    pub(super) fn cut(&mut self, limit: u32) -> Option<Fragment> {
        let message = self.waiting.front_mut()?;
        let start = message.sent;
        let end = start.saturating_add(limit).min(message.length);
        message.sent = end;
        self.bytes -= u64::from(end - start);
        let is_last = end == message.length;
        let fragment = Fragment {
            token: message.token,
            range: start..end,
            remaining: message.length - end,
            invalidate: message.invalidate.filter(|_| is_last),
        };
        if is_last {
            self.waiting.pop_front();
        }
        Some(fragment)
    }

    /// Records a SEND, and the message that it ends.
    pub(super) fn post(&mut self, ends: Option<MessageToken>) -> SendId {
        let id = self.completed + self.posted.len() as u64;
        self.posted.push_back(ends);
        SendId(id)
    }

    /// Removes and returns the messages with all SENDs completed, up to this one.
    pub(super) fn complete(&mut self, id: SendId) -> impl Iterator<Item = MessageToken> {
        let count = (id.0 + 1).saturating_sub(self.completed);
        let posted = self.posted.len();
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        assert!(count <= posted, "only posted SENDs are completed");
        self.completed += count as u64;
        self.posted.drain(..count).flatten()
    }

    /// Removes everything.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_cut_without_gaps_and_its_last_piece_invalidates() {
        let mut queue = Queue::default();
        queue.push(MessageToken(7), 250, Some(99));
        queue.push(MessageToken(8), 100, None);
        let cut: Vec<_> = core::iter::from_fn(|| queue.cut(100)).collect();
        let seen: Vec<_> = cut
            .iter()
            .map(|piece| {
                (
                    piece.token.0,
                    piece.range.clone(),
                    piece.remaining,
                    piece.invalidate,
                )
            })
            .collect();
        let expected = [
            (7, 0..100, 150, None),
            (7, 100..200, 50, None),
            (7, 200..250, 0, Some(99)),
            (8, 0..100, 0, None),
        ];
        assert_eq!(seen, expected);
        assert_eq!((queue.len(), queue.bytes()), (0, 0));
    }

    #[test]
    fn one_completion_stands_for_all_before_it() {
        let mut queue = Queue::default();
        let ids =
            [None, Some(MessageToken(1)), None, Some(MessageToken(2))].map(|ends| queue.post(ends));
        assert_eq!(ids, [0, 1, 2, 3].map(SendId));
        let mut done = |id| {
            queue
                .complete(SendId(id))
                .map(|token| token.0)
                .collect::<Vec<_>>()
        };
        assert_eq!(done(0), []);
        assert_eq!(done(2), [1]);
        assert_eq!(done(1), []);
        assert_eq!(done(3), [2]);
    }

    use alloc::vec::Vec;
}
