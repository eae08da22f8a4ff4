//! Requests that wait: for an operation of the driver, or for another client.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::sync::atomic::AtomicUsize;

use super::drain::DrainId;
use super::task::TaskId;
use crate::file::FileKey;
use crate::id::OpId;
use crate::server::context::Parked;
use crate::server::op_ids::OpIds;
use crate::time::Instant;

/// The receiver of the outcome of an operation.
#[derive(Clone, Copy, Debug)]
pub(super) enum Waiter {
    Task(TaskId),
    Drain(DrainId),
}

/// The waiting requests of one connection, by the operations that they wait for.
#[derive(Debug, Default)]
pub(super) struct Waits {
    op_ids: OpIds,
    /// The receivers of outcomes: of operations in flight, and of parked requests.
    waiting: BTreeMap<OpId, Waiter>,
    /// Requests that wait for another client: for the break of an oplock or a byte-range lock, for
    /// example. Each has an entry in `waiting` too.
    parked: BTreeMap<OpId, Parked>,
    /// Number of parked requests that wait for a byte-range lock.
    lock_waits: Arc<AtomicUsize>,
}

impl Waits {
    /// Waits for an operation that the driver will complete.
    pub(super) fn insert(&mut self, op: OpId, waiter: Waiter) {
        self.waiting.insert(op, waiter);
    }

    /// Waits for another client.
    pub(super) fn park(&mut self, parked: Parked, task: TaskId) {
        self.waiting.insert(parked.op, Waiter::Task(task));
        self.parked.insert(parked.op, parked);
    }

    /// The receiver of an operation that is complete.
    pub(super) fn complete(&mut self, op: OpId) -> Option<Waiter> {
        self.waiting.remove(&op)
    }

    /// Ends the wait of a parked request; `None` if it does not wait any more.
    pub(super) fn unpark(&mut self, op: OpId) -> Option<(Parked, TaskId)> {
        let parked = self.parked.remove(&op)?;
        match self.waiting.remove(&op) {
            Some(Waiter::Task(task)) => Some((parked, task)),
            other => panic!("a parked request is a task, not {other:?}"),
        }
    }

    /// Whether a request is parked under this number.
    pub(super) fn is_parked(&self, op: OpId) -> bool {
        self.parked.contains_key(&op)
    }

    /// A parked request.
    pub(super) fn first_parked(&self) -> Option<OpId> {
        self.parked.keys().next().copied()
    }

    /// A parked request that continues now, because its time limit has passed.
    pub(super) fn first_limited(&self, now: Instant) -> Option<OpId> {
        let is_due = |parked: &Parked| parked.until.is_some_and(|until| until <= now);
        let mut parked = self.parked.values();
        let due = parked.find(|parked| parked.is_limited && is_due(parked))?;
        Some(due.op)
    }

    /// Extends or ends the time limit of each parked request that has reached it. `expire` returns
    /// the next limit for a file.
    pub(super) fn expire(
        &mut self,
        now: Instant,
        mut expire: impl FnMut(FileKey) -> Option<Instant>,
    ) {
        for parked in self.parked.values_mut().filter(|it| !it.is_limited) {
            if parked.until.is_some_and(|until| until <= now) {
                parked.until = expire(parked.key);
            }
        }
    }

    /// The next time limit of a parked request.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.parked.values().filter_map(|parked| parked.until).min()
    }

    /// Operations that requests wait for.
    pub(super) fn operations_of_tasks(&self) -> impl Iterator<Item = OpId> {
        let waiting = self.waiting.iter();
        let of_tasks = waiting.filter(|(_, waiter)| matches!(waiter, Waiter::Task(_)));
        of_tasks.map(|(op, _)| *op)
    }

    /// An operation that is not complete.
    pub(super) fn unfinished(&self) -> Option<OpId> {
        self.waiting.keys().next().copied()
    }

    /// The allocator of operation numbers.
    pub(super) fn op_ids(&mut self) -> &mut OpIds {
        &mut self.op_ids
    }

    /// The fields that a handler needs to wait: the count of lock waits and the allocator.
    pub(super) fn for_handler(&mut self) -> (&Arc<AtomicUsize>, &mut OpIds) {
        (&self.lock_waits, &mut self.op_ids)
    }
}
