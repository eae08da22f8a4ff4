//! A flag that wakes tasks of the same worker.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// A flag that tasks of one thread can wait for. If it is raised several times before a waiting
/// task runs, the task wakes once.
#[derive(Debug, Default)]
pub struct Signal {
    is_raised: Cell<bool>,
    waiting: RefCell<Vec<Waker>>,
}

impl Signal {
    /// Raises the flag and wakes all waiting tasks. The flag stays raised until
    /// [`lower`](Self::lower).
    pub fn raise(&self) {
        self.is_raised.set(true);
        let waiting = std::mem::take(&mut *self.waiting.borrow_mut());
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Returns whether the flag is raised.
    pub fn is_raised(&self) -> bool {
        self.is_raised.get()
    }

    /// Lowers the flag: later calls of [`raised`](Self::raised) wait again.
    pub fn lower(&self) {
        self.is_raised.set(false);
    }

    /// Waits until the flag is raised, and does not lower it.
    pub async fn raised(&self) {
        poll_fn(|context| self.poll_raised(context)).await;
    }

    fn poll_raised(&self, context: &Context<'_>) -> Poll<()> {
        if self.is_raised() {
            return Poll::Ready(());
        }
        let mut waiting = self.waiting.borrow_mut();
        if !waiting.iter().any(|waker| waker.will_wake(context.waker())) {
            waiting.push(context.waker().clone());
        }
        Poll::Pending
    }
}

/// The output of the future that finished first in [`either`].
pub enum Either<A, B> {
    /// Output of the first future.
    First(A),
    /// Output of the second future.
    Second(B),
}

/// Waits until one of two futures is done, and returns the output of that one. If both are ready,
/// the first one wins. The caller keeps both futures.
pub async fn either<A, B>(
    mut first: Pin<&mut A>,
    mut second: Pin<&mut B>,
) -> Either<A::Output, B::Output>
where
    A: Future,
    B: Future,
{
    poll_fn(|context| {
        if let Poll::Ready(output) = first.as_mut().poll(context) {
            return Poll::Ready(Either::First(output));
        }
        second.as_mut().poll(context).map(Either::Second)
    })
    .await
}
