//! A flag that wakes tasks of the same worker.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use slab::Slab;

/// A flag that tasks of one thread can wait for. [`raise`](Self::raise) sets the flag and wakes all
/// waiting tasks. The flag stays set, so a raise without a waiting task is not lost: a later
/// [`raised`](Self::raised) returns at once. Only [`lower`](Self::lower) clears the flag; neither a
/// wait nor a wake-up does. A second raise of a set flag changes nothing.
#[derive(Debug, Default)]
pub struct Signal {
    is_raised: Cell<bool>,
    /// The wakers of the futures that wait.
    waiting: RefCell<Slab<Waker>>,
}

impl Signal {
    /// Sets the flag, and wakes all tasks that wait in [`raised`](Self::raised). The flag stays set
    /// until [`lower`](Self::lower), also if no task waits.
    pub fn raise(&self) {
        self.is_raised.set(true);
        for (_, waker) in &*self.waiting.borrow() {
            waker.wake_by_ref();
        }
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
    pub fn raised(&self) -> Raised<'_> {
        Raised {
            signal: self,
            key: None,
        }
    }
}

/// The future of [`Signal::raised`].
#[derive(Debug)]
#[must_use = "a future does nothing without a poll"]
pub struct Raised<'a> {
    signal: &'a Signal,
    /// Key of the waker of this future in the table of the signal.
    key: Option<usize>,
}

impl Future for Raised<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.signal.is_raised() {
            return Poll::Ready(());
        }
        let mut waiting = self.signal.waiting.borrow_mut();
        match self.key {
            Some(key) => waiting[key].clone_from(context.waker()),
            None => self.key = Some(waiting.insert(context.waker().clone())),
        }
        Poll::Pending
    }
}

impl Drop for Raised<'_> {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            self.signal.waiting.borrow_mut().remove(key);
        }
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

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    fn poll(future: Pin<&mut Raised<'_>>) -> Poll<()> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn a_signal_forgets_futures_that_are_dropped() {
        let signal = Signal::default();
        for _ in 0..100 {
            assert!(poll(pin!(signal.raised())).is_pending());
        }
        assert!(signal.waiting.borrow().is_empty());
        let mut waits = pin!(signal.raised());
        assert!(poll(waits.as_mut()).is_pending() && poll(waits.as_mut()).is_pending());
        assert_eq!(signal.waiting.borrow().len(), 1);
        signal.raise();
        assert!(poll(waits).is_ready());
    }

    #[test]
    fn a_future_waits_again_if_the_flag_is_cleared_before_its_poll() {
        let signal = Signal::default();
        let mut waits = pin!(signal.raised());
        assert!(poll(waits.as_mut()).is_pending());
        signal.raise();
        signal.lower();
        assert!(poll(waits.as_mut()).is_pending());
        signal.raise();
        assert!(poll(waits).is_ready());
    }
}
