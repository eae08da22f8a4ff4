//! Waiting for a future without a runtime.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

/// Blocks the thread until a future is done. Implemented for every future.
///
/// This works for the futures of this crate, and for other futures that need no runtime. A thread
/// that runs other futures must not use it: it would block them all.
pub trait Wait: Future {
    /// Runs the future to its end on this thread and returns the output. The thread sleeps while
    /// the future is pending.
    fn wait(self) -> Self::Output;
}

impl<F: Future> Wait for F {
    fn wait(self) -> Self::Output {
        let mut future = pin!(self);
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        let mut context = Context::from_waker(&waker);
        loop {
            match future.as_mut().poll(&mut context) {
                Poll::Ready(output) => return output,
                Poll::Pending => std::thread::park(),
            }
        }
    }
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
