//! A small pool of threads for calls that may block and that no driver supports.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::thread;
use std::time::Duration;

use crate::lock::lock;

/// Limit of the closures that are queued or running; further callers wait. It is large enough to
/// keep all threads busy, and small enough to bound the work that waits for a stuck disk.
const JOBS_MAX: usize = 1024;
/// Time after which an idle thread ends.
const IDLE_MAX: Duration = Duration::from_secs(10);

type Job = Box<dyn FnOnce() + Send>;

/// The thread pool of one runtime.
pub(crate) struct Blocking {
    shared: Arc<Shared>,
    jobs: Cell<usize>,
    waiters: RefCell<VecDeque<Waker>>,
}

struct Shared {
    state: Mutex<State>,
    work: Condvar,
    threads_max: usize,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Job>,
    threads: usize,
    idle: usize,
    is_closed: bool,
}

type Outcome<T> = Result<T, Box<dyn Any + Send>>;

/// The slot for the result of a closure.
struct Reply<T> {
    outcome: Mutex<(Option<Outcome<T>>, Option<Waker>)>,
}

impl Blocking {
    pub(crate) fn new(threads_max: usize) -> Self {
        let threads_max = threads_max.max(1);
        let shared = Shared {
            state: Mutex::default(),
            work: Condvar::new(),
            threads_max,
        };
        Self {
            shared: Arc::new(shared),
            jobs: Cell::new(0),
            waiters: RefCell::default(),
        }
    }

    /// Runs a closure on a thread and waits for its result.
    pub(crate) async fn run<T, F>(&self, closure: F) -> T
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        let _slot = self.slot().await;
        let reply = Arc::new(Reply {
            outcome: Mutex::new((None, None)),
        });
        let answer = Arc::clone(&reply);
        self.shared.push(Box::new(move || {
            let outcome = catch_unwind(AssertUnwindSafe(closure));
            let mut cell = lock(&answer.outcome);
            cell.0 = Some(outcome);
            let waker = cell.1.take();
            drop(cell);
            waker.into_iter().for_each(Waker::wake);
        }));
        let outcome = poll_fn(|context| {
            let mut cell = lock(&reply.outcome);
            match cell.0.take() {
                Some(outcome) => Poll::Ready(outcome),
                None => {
                    cell.1 = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await;
        outcome.unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Ends all threads once the queue is empty.
    pub(crate) fn close(&self) {
        lock(&self.shared.state).is_closed = true;
        self.shared.work.notify_all();
    }

    async fn slot(&self) -> Slot<'_> {
        poll_fn(|context| {
            if self.jobs.get() < JOBS_MAX {
                self.jobs.set(self.jobs.get() + 1);
                return Poll::Ready(Slot(self));
            }
            self.waiters.borrow_mut().push_back(context.waker().clone());
            Poll::Pending
        })
        .await
    }
}

/// One of `JOBS_MAX` slots.
struct Slot<'a>(&'a Blocking);

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.0.jobs.set(self.0.jobs.get() - 1);
        // Wake all waiters: the first one may belong to a future that was dropped.
        let waiters = std::mem::take(&mut *self.0.waiters.borrow_mut());
        waiters.into_iter().for_each(Waker::wake);
    }
}

impl Shared {
    fn push(self: &Arc<Self>, job: Job) {
        let mut state = lock(&self.state);
        state.queue.push_back(job);
        let needs_thread = state.queue.len() > state.idle && state.threads < self.threads_max;
        if !needs_thread {
            drop(state);
            return self.work.notify_one();
        }
        state.threads += 1;
        drop(state);
        let shared = Arc::clone(self);
        let builder = thread::Builder::new().name("blocking".to_owned());
        if let Err(error) = builder.spawn(move || shared.work()) {
            tracing::warn!(%error, "cannot start a thread for blocking calls");
            self.thread_refused();
        }
    }

    /// Handles a failure to start a thread. With other threads the job only waits longer; without
    /// any, it runs on this thread.
    fn thread_refused(&self) {
        let mut state = lock(&self.state);
        state.threads -= 1;
        if state.threads == 0 {
            let jobs = std::mem::take(&mut state.queue);
            drop(state);
            jobs.into_iter().for_each(|job| job());
        }
    }

    fn work(&self) {
        while let Some(job) = self.next() {
            job();
        }
    }

    fn next(&self) -> Option<Job> {
        let mut state = lock(&self.state);
        loop {
            if let Some(job) = state.queue.pop_front() {
                return Some(job);
            }
            if state.is_closed {
                state.threads -= 1;
                return None;
            }
            state.idle += 1;
            let result = self.work.wait_timeout(state, IDLE_MAX);
            let (guard, timeout) = result.unwrap_or_else(PoisonError::into_inner);
            state = guard;
            state.idle -= 1;
            if timeout.timed_out() && state.queue.is_empty() {
                state.threads -= 1;
                return None;
            }
        }
    }
}
