//! Tasks: futures that a runtime polls when their wakers ask for it.

use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use slab::Slab;

use crate::waker::{RuntimeWaker, TaskWaker};

type BoxFuture = Pin<Box<dyn Future<Output = ()>>>;

/// Slot number of the future that `block_on` polls itself.
pub(crate) const MAIN: usize = usize::MAX;

struct Slot {
    task: Arc<TaskWaker>,
    /// `None` during a poll of the task.
    future: Option<BoxFuture>,
}

/// All tasks of a runtime.
#[derive(Default)]
pub(crate) struct Tasks {
    slots: RefCell<Slab<Slot>>,
}

impl Tasks {
    /// Adds a task and queues its first poll.
    pub(crate) fn spawn(&self, waker: &Arc<RuntimeWaker>, future: BoxFuture) -> Arc<TaskWaker> {
        let mut slots = self.slots.borrow_mut();
        let entry = slots.vacant_entry();
        let task = TaskWaker::new(entry.key(), Arc::clone(waker));
        entry.insert(Slot {
            task: Arc::clone(&task),
            future: Some(future),
        });
        drop(slots);
        Waker::from(Arc::clone(&task)).wake();
        task
    }

    /// Polls a task once, unless it has ended.
    pub(crate) fn poll(&self, task: &Arc<TaskWaker>) {
        let Some(mut future) = self.check_out(task) else {
            return;
        };
        task.start_poll();
        let waker = Waker::from(Arc::clone(task));
        let mut context = Context::from_waker(&waker);
        match future.as_mut().poll(&mut context) {
            Poll::Pending => self.check_in(task, future),
            Poll::Ready(()) => self.remove(task),
        }
    }

    /// Ends a task. Its future is dropped now, or after the current poll.
    pub(crate) fn remove(&self, task: &Arc<TaskWaker>) {
        let mut slots = self.slots.borrow_mut();
        let is_same = |slot: &Slot| Arc::ptr_eq(&slot.task, task);
        let removed = match slots.get(task.slot) {
            Some(slot) if is_same(slot) => Some(slots.remove(task.slot)),
            _ => None,
        };
        // Dropping the future may spawn or abort tasks, so the borrow ends first.
        drop(slots);
        drop(removed);
    }

    /// Ends all tasks, also those that other tasks spawn meanwhile.
    pub(crate) fn clear(&self) {
        loop {
            let slots = std::mem::take(&mut *self.slots.borrow_mut());
            if slots.is_empty() {
                return;
            }
            drop(slots);
        }
    }

    fn check_out(&self, task: &Arc<TaskWaker>) -> Option<BoxFuture> {
        let mut slots = self.slots.borrow_mut();
        let slot = slots.get_mut(task.slot)?;
        if Arc::ptr_eq(&slot.task, task) {
            slot.future.take()
        } else {
            None
        }
    }

    fn check_in(&self, task: &Arc<TaskWaker>, future: BoxFuture) {
        let mut slots = self.slots.borrow_mut();
        match slots.get_mut(task.slot) {
            Some(slot) if Arc::ptr_eq(&slot.task, task) => slot.future = Some(future),
            // The task has aborted itself during the poll.
            _ => {
                drop(slots);
                drop(future);
            }
        }
    }
}

/// Reason why a task has no output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinError {
    /// A caller aborted the task, or the runtime ended first.
    Aborted,
    /// The task panicked. The panic was logged and ended only the task.
    Panicked,
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Aborted => "the task was aborted",
            Self::Panicked => "the task panicked",
        })
    }
}

impl std::error::Error for JoinError {}

struct Join<T> {
    outcome: Option<Result<T, JoinError>>,
    is_ended: bool,
    waker: Option<Waker>,
}

impl<T> Join<T> {
    fn end(join: &RefCell<Self>, outcome: Result<T, JoinError>) {
        let mut join = join.borrow_mut();
        if !join.is_ended {
            join.is_ended = true;
            join.outcome = Some(outcome);
            join.waker.take().into_iter().for_each(Waker::wake);
        }
    }
}

/// Reports the end of a task if its future is dropped before it is done.
struct EndOnDrop<T>(Rc<RefCell<Join<T>>>);

impl<T> Drop for EndOnDrop<T> {
    fn drop(&mut self) {
        Join::end(&self.0, Err(JoinError::Aborted));
    }
}

/// A handle of a task that [`Handle::spawn`](crate::Handle::spawn) started. Awaiting it returns the
/// output of the task. Dropping the handle does not end the task.
pub struct JoinHandle<T> {
    join: Rc<RefCell<Join<T>>>,
    task: Arc<TaskWaker>,
    tasks: Weak<Tasks>,
}

impl<T> JoinHandle<T> {
    /// Ends the task: its future is dropped at once, or after the current poll if the task calls
    /// this for itself.
    pub fn abort(&self) {
        if let Some(tasks) = self.tasks.upgrade() {
            tasks.remove(&self.task);
        }
    }

    /// Returns whether the task has ended, by itself or by an abort.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.join.borrow().is_ended
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, JoinError>;

    /// A poll after the output was taken returns `Aborted`.
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut join = self.join.borrow_mut();
        if join.is_ended {
            return Poll::Ready(join.outcome.take().unwrap_or(Err(JoinError::Aborted)));
        }
        join.waker = Some(context.waker().clone());
        Poll::Pending
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinHandle")
            .field("is_finished", &self.is_finished())
            .finish()
    }
}

/// Spawns `future` as one of `tasks`. A panic ends the task, not the worker.
pub(crate) fn spawn<F>(
    tasks: &Rc<Tasks>,
    waker: &Arc<RuntimeWaker>,
    future: F,
) -> JoinHandle<F::Output>
where
    F: Future + 'static,
{
    let state = Join {
        outcome: None,
        is_ended: false,
        waker: None,
    };
    let join = Rc::new(RefCell::new(state));
    let end = EndOnDrop(Rc::clone(&join));
    let body = async move {
        let outcome = CatchPanic {
            future: Box::pin(future),
        }
        .await;
        Join::end(&end.0, outcome);
    };
    let task = tasks.spawn(waker, Box::pin(body));
    JoinHandle {
        join,
        task,
        tasks: Rc::downgrade(tasks),
    }
}

struct CatchPanic<F> {
    future: Pin<Box<F>>,
}

impl<F: Future> Future for CatchPanic<F> {
    type Output = Result<F::Output, JoinError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let future = self.future.as_mut();
        // Unwind safety: after a panic the future is only dropped.
        match catch_unwind(AssertUnwindSafe(|| future.poll(context))) {
            Ok(poll) => poll.map(Ok),
            Err(_) => {
                tracing::error!("a task panicked and was ended");
                Poll::Ready(Err(JoinError::Panicked))
            }
        }
    }
}
