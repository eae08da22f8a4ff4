//! Timers: a sorted map of deadlines. The loop checks it once per turn.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

type Key = (Instant, u64);

/// All deadlines of a runtime. Equal deadlines fire in the order in which they were set.
#[derive(Default)]
pub(crate) struct Timers {
    deadlines: RefCell<BTreeMap<Key, Waker>>,
    count: Cell<u64>,
}

impl Timers {
    fn key(&self, deadline: Instant) -> Key {
        self.count.set(self.count.get() + 1);
        (deadline, self.count.get())
    }

    /// The earliest deadline.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.deadlines
            .borrow()
            .first_key_value()
            .map(|(key, _)| key.0)
    }

    /// Wakes the tasks of all deadlines up to `now`.
    pub(crate) fn fire(&self, now: Instant) {
        loop {
            let mut deadlines = self.deadlines.borrow_mut();
            match deadlines.first_entry() {
                Some(entry) if entry.key().0 <= now => entry.remove().wake(),
                _ => return,
            }
        }
    }
}

/// A future that is ready when its time has passed. Created by
/// [`Handle::sleep`](crate::Handle::sleep) and [`Handle::sleep_until`](crate::Handle::sleep_until).
pub struct Sleep {
    timers: Rc<Timers>,
    deadline: Instant,
    key: Option<Key>,
}

impl Sleep {
    pub(crate) fn new(timers: Rc<Timers>, deadline: Instant) -> Self {
        Self {
            timers,
            deadline,
            key: None,
        }
    }

    fn forget(&mut self) {
        if let Some(key) = self.key.take() {
            let waker = self.timers.deadlines.borrow_mut().remove(&key);
            drop(waker);
        }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if Instant::now() >= self.deadline {
            self.forget();
            return Poll::Ready(());
        }
        let key = self.key.unwrap_or_else(|| self.timers.key(self.deadline));
        let waker = context.waker().clone();
        let old = self.timers.deadlines.borrow_mut().insert(key, waker);
        drop(old);
        self.key = Some(key);
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.forget();
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleep")
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

/// Error of [`Handle::timeout`](crate::Handle::timeout): the time limit passed before the future
/// was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elapsed;

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the time limit passed")
    }
}

impl std::error::Error for Elapsed {}

/// Runs `future` for at most `duration`. When both are ready, the output of the future counts.
pub(crate) async fn timeout<F: Future>(
    timers: &Rc<Timers>,
    duration: Duration,
    future: F,
) -> Result<F::Output, Elapsed> {
    let mut future = pin!(future);
    let mut sleep = pin!(Sleep::new(Rc::clone(timers), Instant::now() + duration));
    poll_fn(|context| {
        if let Poll::Ready(output) = future.as_mut().poll(context) {
            return Poll::Ready(Ok(output));
        }
        sleep.as_mut().poll(context).map(|()| Err(Elapsed))
    })
    .await
}
