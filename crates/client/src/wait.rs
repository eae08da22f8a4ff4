//! Waiting for a future without a runtime.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// Blocks the thread until a future is done. Implemented for every future.
///
/// This works for the futures of this crate, and for other futures that need no runtime. A thread
/// that runs other futures must not use it: it would block them all.
pub trait Wait: Future {
    /// Runs the future to its end on this thread and returns the output. The thread sleeps while
    /// the future is pending.
    fn wait(self) -> Self::Output;

    /// Runs the future on this thread for at most `limit`. Returns the output, or `None` if the
    /// future is not done; a later call continues it. The thread sleeps while the future is
    /// pending.
    fn wait_for(&mut self, limit: Duration) -> Option<Self::Output>
    where
        Self: Unpin;
}

impl<F: Future> Wait for F {
    fn wait(self) -> Self::Output {
        let mut future = pin!(self);
        let waker = waker_of_this_thread();
        let mut context = Context::from_waker(&waker);
        loop {
            match future.as_mut().poll(&mut context) {
                Poll::Ready(output) => return output,
                Poll::Pending => std::thread::park(),
            }
        }
    }

    fn wait_for(&mut self, limit: Duration) -> Option<F::Output>
    where
        F: Unpin,
    {
        let end = Instant::now() + limit;
        let waker = waker_of_this_thread();
        let mut context = Context::from_waker(&waker);
        loop {
            if let Poll::Ready(output) = Pin::new(&mut *self).poll(&mut context) {
                return Some(output);
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            std::thread::park_timeout(left);
        }
    }
}

fn waker_of_this_thread() -> Waker {
    Waker::from(Arc::new(Unpark(std::thread::current())))
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}
