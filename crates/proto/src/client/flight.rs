//! Requests in flight, and requests that wait to be sent.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use wire::{AsyncId, Command, MessageId, TreeId};

use super::registration::{Placement, Registration};
use super::request::{Failure, Reply, Request, RequestId};
use crate::time::Instant;

/// A request in flight.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) request: Request,
    /// MessageId of each step.
    pub(super) ids: Vec<MessageId>,
    /// Result of each step.
    pub(super) results: Vec<Option<Result<Reply, Failure>>>,
    /// Deadline.
    pub(super) deadline: Option<Instant>,
    /// Count of bytes that it sends and requests.
    pub(super) bytes: u64,
    /// Whether the driver canceled it.
    pub(super) is_cancelled: bool,
    /// Session.ChannelSequence at its sending.
    pub(super) sequence: u16,
    /// Count of retries.
    pub(super) retries: u8,
    /// Registered memory.
    pub(super) memory: Option<Registration>,
}

/// A message without a final response.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) owner: Owner,
    pub(super) command: Command,
    /// TreeId.
    pub(super) tree: Option<TreeId>,
    pub(super) is_signed: bool,
    pub(super) is_encrypted: bool,
    /// Credit charge.
    pub(super) charge: u16,
    /// AsyncId of its interim response.
    pub(super) async_id: Option<AsyncId>,
    /// Whether a CANCEL was sent. A second one would have the same nonce.
    pub(super) is_cancelled: bool,
}

/// The owner of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// The connection, for NEGOTIATE.
    Negotiate,
    /// The login.
    SessionSetup,
    /// A step of a request.
    Step(RequestId, usize),
    /// The validation of NEGOTIATE.
    Validate,
    /// The connection itself: ECHO, acknowledgments, cleanup. It ignores the response.
    Own,
    /// A step of a request that timed out. The client closes its open, unless the same request does
    /// that.
    Abandoned {
        /// Whether the client undoes the step.
        is_to_be_undone: bool,
        /// Whether the share requires encryption.
        encrypt: bool,
    },
}

/// A request that waits to be sent.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) id: RequestId,
    pub(super) request: Request,
    /// Credit charge of all steps.
    pub(super) charge: u32,
    /// Count of bytes that it sends and requests.
    pub(super) bytes: u64,
    /// Count of retries.
    pub(super) retries: u8,
    /// Deadline for sending it.
    pub(super) deadline: Option<Instant>,
    /// Path of its data.
    pub(super) placement: Placement,
}

/// Largest count of requests that overtake the first waiting one. The first one needs many credits,
/// and later ones that need few can be sent before it, but not without a limit.
const OVERTAKERS_MAX: u32 = 64;
/// Count of waiting requests that are considered for overtaking.
const LOOK_AHEAD: usize = 64;

/// Waiting requests in the order of their arrival.
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

    /// Returns a taken request to the front.
    pub(super) fn put_back(&mut self, waiting: Waiting) {
        self.bytes += waiting.bytes;
        self.waiting.push_front(waiting);
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Count of bytes of all waiting requests.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether a waiting request is behind another one that is not done.
    pub(super) fn is_behind(&self, id: RequestId, is_pending: impl Fn(RequestId) -> bool) -> bool {
        let waits = self.waiting.iter().any(|waiting| waiting.id == id);
        waits && self.in_turn(is_pending).all(|(_, next)| next.id != id)
    }

    /// The requests that are not behind a pending or waiting one.
    fn in_turn(
        &self,
        is_pending: impl Fn(RequestId) -> bool,
    ) -> impl Iterator<Item = (usize, &Waiting)> {
        let waits = |id| self.waiting.iter().any(|waiting| waiting.id == id);
        let is_open = move |id| is_pending(id) || waits(id);
        let waiting = self.waiting.iter().enumerate();
        waiting.filter(move |(_, waiting)| !waiting.request.behind.is_some_and(&is_open))
    }

    /// The first request that is not behind another one.
    pub(super) fn first(&self, is_pending: impl Fn(RequestId) -> bool) -> Option<&Waiting> {
        self.in_turn(is_pending).next().map(|(_, first)| first)
    }

    /// Takes the first request that is not behind another one and that `may_go`.
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

    /// Takes a request.
    pub(super) fn remove(&mut self, id: RequestId) -> Option<Waiting> {
        let index = self.waiting.iter().position(|waiting| waiting.id == id)?;
        self.take_at(index)
    }

    /// Takes the first request.
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

    /// The count of overtaking requests is limited, but the request that the first one is behind
    /// may always overtake it.
    #[test]
    fn a_request_behind_a_later_one_does_not_block_the_queue() {
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
