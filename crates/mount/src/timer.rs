//! Waits of tasks for a time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::future::poll_fn;
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::thread::Builder;
use std::time::{Duration, Instant};

use crate::handles::lock;

/// A thread that wakes tasks at their times. Dropping it ends the thread.
pub(crate) struct Timer(Arc<Shared>);

#[derive(Default)]
struct Shared {
    inner: Mutex<Inner>,
    is_changed: Condvar,
}

#[derive(Default)]
struct Inner {
    waits: BinaryHeap<Reverse<Wait>>,
    is_closed: bool,
}

struct Wait(Instant, Waker);

impl PartialEq for Wait {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Wait {}

impl PartialOrd for Wait {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Wait {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.cmp(&other.0)
    }
}

impl Timer {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub(crate) fn new() -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let thread = Arc::clone(&shared);
        let name = "mount-timer".to_owned();
        Builder::new().name(name).spawn(move || thread.run())?;
        Ok(Self(shared))
    }

    /// Waits for a time.
    pub(crate) async fn sleep(&self, time: Duration) {
        let end = Instant::now() + time;
        poll_fn(|context| {
            if Instant::now() >= end {
                return Poll::Ready(());
            }
            let wait = Reverse(Wait(end, context.waker().clone()));
            lock(&self.0.inner).waits.push(wait);
            self.0.is_changed.notify_one();
            Poll::Pending
        })
        .await;
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        lock(&self.0.inner).is_closed = true;
        self.0.is_changed.notify_one();
    }
}

impl Shared {
    fn run(&self) {
        let mut inner = lock(&self.inner);
        while !inner.is_closed {
            let now = Instant::now();
            let next = inner.waits.peek().map(|Reverse(Wait(at, _))| *at);
            inner = match next {
                Some(at) if at <= now => {
                    if let Some(Reverse(Wait(_, waker))) = inner.waits.pop() {
                        waker.wake();
                    }
                    inner
                }
                Some(at) => {
                    let waited = self.is_changed.wait_timeout(inner, at - now);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => {
                    let waited = self.is_changed.wait(inner);
                    waited.unwrap_or_else(PoisonError::into_inner)
                }
            };
        }
    }
}
