//! What is under way, and what waits to be sent.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use wire::{AsyncId, Command, MessageId, TreeId};

use super::registration::{Placement, Registration};
use super::request::{Failure, Reply, Request, RequestId};
use crate::time::Instant;

/// A request that was sent.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) request: Request,
    /// The id of each step's message.
    pub(super) ids: Vec<MessageId>,
    /// What came of each step.
    pub(super) results: Vec<Option<Result<Reply, Failure>>>,
    /// When it is given up on.
    pub(super) deadline: Option<Instant>,
    /// Bytes that it sends and asks for.
    pub(super) bytes: u64,
    /// Whether the driver wants it no more.
    pub(super) is_cancelled: bool,
    /// Session.ChannelSequence when it was sent.
    pub(super) sequence: u16,
    /// How often the server put it off.
    pub(super) retries: u8,
    /// Memory that it names.
    pub(super) memory: Option<Registration>,
}

/// A message that was sent and has got no final answer.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) owner: Owner,
    pub(super) command: Command,
    /// The tree that it was about.
    pub(super) tree: Option<TreeId>,
    pub(super) is_signed: bool,
    pub(super) is_sealed: bool,
    /// Credits that it cost.
    pub(super) charge: u16,
    /// From its interim answer. That came if there is one.
    pub(super) async_id: Option<AsyncId>,
    /// Whether a CANCEL was sent. Never a second one: it would have the same nonce.
    pub(super) is_cancelled: bool,
}

/// Whose message it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// The connection's own.
    Negotiate,
    /// The login's.
    SessionSetup,
    /// A step of a request.
    Step(RequestId, usize),
    /// The proof that NEGOTIATE was not tampered with.
    Validate,
    /// The connection's own: ECHO, acknowledgements, tidying up. The answer does not matter.
    Own,
    /// A step of a request that was given up on. What it opened is closed, unless the same
    /// request did that.
    Abandoned {
        /// Whether to close it.
        is_to_be_undone: bool,
        /// Whether the share asks for sealing.
        seal: bool,
    },
}

/// A request that waits to be sent.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) id: RequestId,
    pub(super) request: Request,
    /// Credits of all its steps.
    pub(super) charge: u32,
    /// Bytes that it sends and asks for.
    pub(super) bytes: u64,
    /// How often the server put it off.
    pub(super) retries: u8,
    /// When it is given up on if it is not sent by then.
    pub(super) deadline: Option<Instant>,
    /// Where its data go.
    pub(super) placement: Placement,
}

/// How many requests may overtake the first one that waits. It costs many credits, and those
/// behind it cost few and can go; but not for ever.
const OVERTAKERS_MAX: u32 = 64;
/// How far behind the first one is looked for one that can go.
const LOOK_AHEAD: usize = 64;

/// Requests in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: VecDeque<Waiting>,
    overtakers: u32,
    bytes: u64,
}

impl Queue {
    pub(super) fn push(&mut self, waiting: Waiting) {
        self.bytes += waiting.bytes;
        self.waiting.push_back(waiting);
    }

    /// Puts one back that was taken and cannot go.
    pub(super) fn put_back(&mut self, waiting: Waiting) {
        self.bytes += waiting.bytes;
        self.waiting.push_front(waiting);
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Bytes of all that wait.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether a request waits, and it is not its turn.
    pub(super) fn is_behind(&self, id: RequestId, is_pending: impl Fn(RequestId) -> bool) -> bool {
        let waits = self.waiting.iter().any(|waiting| waiting.id == id);
        waits && self.in_turn(is_pending).all(|(_, next)| next.id != id)
    }

    /// Those whose turn it is: what they are behind is neither under way nor waits here.
    fn in_turn(
        &self,
        is_pending: impl Fn(RequestId) -> bool,
    ) -> impl Iterator<Item = (usize, &Waiting)> {
        let waits = |id| self.waiting.iter().any(|waiting| waiting.id == id);
        let is_open = move |id| is_pending(id) || waits(id);
        let waiting = self.waiting.iter().enumerate();
        waiting.filter(move |(_, waiting)| !waiting.request.behind.is_some_and(&is_open))
    }

    /// The first one whose turn it is.
    pub(super) fn first(&self, is_pending: impl Fn(RequestId) -> bool) -> Option<&Waiting> {
        self.in_turn(is_pending).next().map(|(_, first)| first)
    }

    /// Takes the first one whose turn it is and that `may_go`.
    pub(super) fn take(
        &mut self,
        is_pending: impl Fn(RequestId) -> bool,
        may_go: impl Fn(&Waiting) -> bool,
    ) -> Option<Waiting> {
        let depth = match self.overtakers < OVERTAKERS_MAX {
            true => LOOK_AHEAD,
            false => 1,
        };
        let mut first = self.in_turn(is_pending).take(depth);
        let (index, _) = first.find(|(_, waiting)| may_go(waiting))?;
        drop(first);
        let overtakers = self.overtakers + 1;
        let taken = self.take_at(index);
        if index > 0 {
            self.overtakers = overtakers;
        }
        taken
    }

    /// Takes this one.
    pub(super) fn remove(&mut self, id: RequestId) -> Option<Waiting> {
        let index = self.waiting.iter().position(|waiting| waiting.id == id)?;
        self.take_at(index)
    }

    /// Takes the first one.
    pub(super) fn pop(&mut self) -> Option<Waiting> {
        self.take_at(0)
    }

    fn take_at(&mut self, index: usize) -> Option<Waiting> {
        let taken = self.waiting.remove(index)?;
        self.bytes -= taken.bytes;
        if index == 0 {
            self.overtakers = 0;
        }
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::super::request::Step;
    use super::*;

    fn waiting(id: u64, behind: Option<u64>) -> Waiting {
        let mut request = Request::new(None, vec![Step::Echo]);
        request.behind = behind.map(RequestId);
        Waiting {
            id: RequestId(id),
            request,
            charge: 1,
            bytes: 0,
            retries: 0,
            deadline: None,
            placement: Placement::Undecided,
        }
    }

    fn take(queue: &mut Queue, pending: u64, may_go: fn(&Waiting) -> bool) -> Option<u64> {
        let taken = queue.take(|id| id.0 == pending, may_go);
        taken.map(|waiting| waiting.id.0)
    }

    /// Not for ever is the first one overtaken, but what it is behind may always go.
    #[test]
    fn one_that_is_behind_a_later_one_blocks_nobody() {
        let mut queue = Queue::default();
        queue.push(waiting(0, Some(1000)));
        for id in 1..=u64::from(OVERTAKERS_MAX) {
            queue.push(waiting(id, None));
            assert_eq!(take(&mut queue, 0, |waiting| waiting.id.0 > 0), Some(id));
        }
        queue.push(waiting(1000, None));
        queue.push(waiting(1001, None));
        assert_eq!(queue.first(|_| false).map(|first| first.id.0), Some(1000));
        assert_eq!(take(&mut queue, 0, |waiting| waiting.id.0 != 1000), None);
        assert_eq!(take(&mut queue, 0, |_| true), Some(1000));
        assert_eq!(take(&mut queue, 1000, |_| true), Some(1001));
        assert_eq!(take(&mut queue, 1000, |_| true), None);
        assert_eq!(take(&mut queue, 0, |_| true), Some(0));
    }
}
