//! A flag that wakes tasks of the same worker.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// A flag that tasks of one thread can wait for. [`raise`](Self::raise) sets the flag and wakes all
/// waiting tasks. The flag stays set, so a raise without a waiting task is not lost: a later
/// [`raised`](Self::raised) returns at once. Only [`lower`](Self::lower) clears the flag; neither a
/// wait nor a wake-up does. A second raise of a set flag changes nothing.
#[derive(Debug, Default)]
pub struct Signal {
    is_raised: Cell<bool>,
    waiting: RefCell<Vec<Waker>>,
}

impl Signal {
    /// Sets the flag, and wakes all tasks that wait in [`raised`](Self::raised). The flag stays set
    /// until [`lower`](Self::lower), also if no task waits.
    pub fn raise(&self) {
        self.is_raised.set(true);
        let waiting = std::mem::take(&mut *self.waiting.borrow_mut());
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Returns whether the flag is set: [`raise`](Self::raise) was called, and
    /// [`lower`](Self::lower) was not called after it.
    pub fn is_raised(&self) -> bool {
        self.is_raised.get()
    }

    /// Clears the flag, so that later calls of [`raised`](Self::raised) wait. A task that
    /// [`raise`](Self::raise) woke and that has not run yet waits again.
    pub fn lower(&self) {
        self.is_raised.set(false);
    }

    /// Waits until the flag is set; returns at once if it is set already. Does not clear the flag.
    /// Several tasks may wait at the same time.
    pub async fn raised(&self) {
        poll_fn(|context| self.poll_raised(context)).await;
    }

    pub(crate) fn poll_raised(&self, context: &Context<'_>) -> Poll<()> {
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
    /// The first future finished first: the value is its output.
    First(A),
    /// The second future finished first: the value is its output.
    Second(B),
}

/// Waits until one of two futures is done, and returns the output of that one. If both are ready,
/// the first one wins. The caller still has both futures, and can poll the other one later.
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
