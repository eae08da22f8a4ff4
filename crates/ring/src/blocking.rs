//! A small pool of threads for calls that may block and that no driver supports.
//!
//! The threads serve the callers in turn (see [`FairQueue`]), so that a caller with many calls does
//! not delay the others.

use std::any::Any;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::thread;
use std::time::Duration;

use crate::fair_queue::{FairQueue, JobSource};
use crate::lock::lock;

/// Limit of the closures of one source that are queued or running; further calls wait. It is large
/// enough to keep all threads busy, and small enough to bound the work that waits for a stuck disk.
const JOBS_MAX: usize = 1024;
/// Time after which an idle thread ends.
const IDLE_MAX: Duration = Duration::from_secs(10);

type Job = Box<dyn FnOnce() + Send>;

/// The thread pool of one runtime.
pub(crate) struct Blocking {
    shared: Arc<Shared>,
    /// Number of queued and running closures by source.
    jobs: RefCell<BTreeMap<JobSource, usize>>,
    waiters: RefCell<VecDeque<Waker>>,
}

struct Shared {
    state: Mutex<State>,
    work: Condvar,
    threads_max: usize,
}

#[derive(Default)]
struct State {
    queue: FairQueue<Job>,
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
            jobs: RefCell::default(),
            waiters: RefCell::default(),
        }
    }

    /// Runs a closure of a source on a thread and waits for its result.
    pub(crate) async fn run<T, F>(&self, source: JobSource, closure: F) -> T
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        let _slot = self.slot(source).await;
        let reply = Arc::new(Reply {
            outcome: Mutex::new((None, None)),
        });
        let answer = Arc::clone(&reply);
        let job = move || {
            let outcome = catch_unwind(AssertUnwindSafe(closure));
            let mut cell = lock(&answer.outcome);
            cell.0 = Some(outcome);
            let waker = cell.1.take();
            drop(cell);
            waker.into_iter().for_each(Waker::wake);
        };
        self.shared.push(source, Box::new(job));
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

    async fn slot(&self, source: JobSource) -> Slot<'_> {
        poll_fn(|context| {
            let mut jobs = self.jobs.borrow_mut();
            let count = jobs.entry(source).or_default();
            if *count < JOBS_MAX {
                *count += 1;
                let pool = self;
                return Poll::Ready(Slot { pool, source });
            }
            self.waiters.borrow_mut().push_back(context.waker().clone());
            Poll::Pending
        })
        .await
    }
}

/// One of the `JOBS_MAX` slots of a source.
struct Slot<'a> {
    pool: &'a Blocking,
    source: JobSource,
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        let mut jobs = self.pool.jobs.borrow_mut();
        let count = jobs.get_mut(&self.source).expect("counted by `slot`");
        *count -= 1;
        if *count == 0 {
            jobs.remove(&self.source);
        }
        drop(jobs);
        // Wake all waiters: the first one may belong to a future that was dropped.
        let waiters = std::mem::take(&mut *self.pool.waiters.borrow_mut());
        waiters.into_iter().for_each(Waker::wake);
    }
}

impl Shared {
    fn push(self: &Arc<Self>, source: JobSource, job: Job) {
        let mut state = lock(&self.state);
        state.queue.push(source, job);
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
            let jobs = state.queue.drain();
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
            if let Some(job) = state.queue.pop() {
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
            if timeout.timed_out() && state.queue.len() == 0 {
                state.threads -= 1;
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::runtime::Runtime;

    /// The one thread runs the first job of a source with 100 jobs. The job of another source is
    /// the next one or the one after it.
    #[test]
    fn a_source_with_many_jobs_delays_another_one_by_one_job() {
        let config = Config {
            blocking_threads: 1,
            ..Config::default()
        };
        let runtime = Runtime::new(&config).expect("a runtime");
        let handle = runtime.handle();
        let order = Arc::new(Mutex::new(Vec::new()));
        let (open, gate) = std::sync::mpsc::channel::<()>();
        let job = |member: u64, gate: Option<std::sync::mpsc::Receiver<()>>| {
            let (order, handle) = (Arc::clone(&order), handle.clone());
            handle.clone().spawn(async move {
                let note = move || {
                    let _ = gate.map(|gate| gate.recv());
                    lock(&order).push(member);
                };
                handle
                    .blocking_for(JobSource { group: 1, member }, note)
                    .await;
            })
        };
        let first = job(1, Some(gate));
        let mut jobs: Vec<_> = (0..100).map(|_| job(1, None)).collect();
        runtime.block_on(handle.yield_now());
        jobs.push(job(2, None));
        jobs.push(first);
        runtime.block_on(async {
            handle.yield_now().await;
            drop(open);
            for job in jobs {
                job.await.expect("no panic");
            }
        });
        let order = lock(&order);
        let position = order.iter().position(|member| *member == 2);
        assert_eq!((position.map(|at| at <= 2), order.len()), (Some(true), 102));
    }
}
