//! Waiting for a future without a runtime.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

/// Blocks the thread until a future is done.
///
/// For every future of this crate (and any other that needs no runtime of its own). Not for a
/// thread that runs other futures: they would all stand still.
pub trait Wait: Future {
    /// Runs the future on this thread, which is parked while there is nothing to do.
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
