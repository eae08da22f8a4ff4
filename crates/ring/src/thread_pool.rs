//! Threads for closures that may block.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use crate::fair_queue::{FairQueue, JobSource};
use crate::lock::lock;

/// Time after which an idle thread ends.
const IDLE_MAX: Duration = Duration::from_secs(10);

pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// Threads for closures that may block. They start when closures wait, and end after ten seconds
/// without work. They serve the sources of closures in turn ([`JobSource`]), so that a source with
/// many closures does not delay the others.
#[derive(Debug)]
pub struct ThreadPool {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    work: Condvar,
    name: &'static str,
    threads_max: usize,
}

#[derive(Default)]
struct State {
    queue: FairQueue<Job>,
    threads: usize,
    idle: usize,
    is_closed: bool,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (name, threads_max) = (self.name, self.threads_max);
        f.debug_struct("Shared")
            .field("name", &name)
            .field("threads_max", &threads_max)
            .finish_non_exhaustive()
    }
}

type Outcome<T> = Result<T, Box<dyn Any + Send>>;

/// The slot for the result of a closure.
struct Reply<T> {
    outcome: Mutex<(Option<Outcome<T>>, Option<Waker>)>,
}

/// The result of a closure, once it has run.
///
/// # Panics
/// The closure has panicked.
pub(crate) struct Pending<T>(Arc<Reply<T>>);

impl<T> Future for Pending<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let mut cell = lock(&self.0.outcome);
        match cell.0.take() {
            Some(outcome) => Poll::Ready(outcome.unwrap_or_else(|panic| resume_unwind(panic))),
            None => {
                cell.1 = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl ThreadPool {
    /// Makes a pool without threads yet. `name` is the name of its threads, at most 15 bytes.
    /// `threads_max` is the maximum number of threads; 0 counts as 1.
    #[must_use]
    pub fn new(name: &'static str, threads_max: usize) -> Self {
        let shared = Shared {
            state: Mutex::default(),
            work: Condvar::new(),
            name,
            threads_max: threads_max.max(1),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Runs a closure on a thread and waits for its result. Returns `None` if `jobs_max` closures
    /// of all sources wait already, or if the pool has no thread and cannot start one.
    ///
    /// # Panics
    /// The closure has panicked.
    pub async fn try_run<T, F>(&self, source: JobSource, jobs_max: usize, closure: F) -> Option<T>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        match self.submit(source, jobs_max, closure) {
            (pending, None) => Some(pending.await),
            (_, Some(_)) => None,
        }
    }

    /// Queues a closure. Returns its result, and the closure as a job if the pool refuses it: the
    /// caller then runs or drops the job.
    pub(crate) fn submit<T, F>(
        &self,
        source: JobSource,
        jobs_max: usize,
        closure: F,
    ) -> (Pending<T>, Option<Job>)
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
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
        let refused = self.shared.push(source, jobs_max, Box::new(job)).err();
        (Pending(reply), refused)
    }

    /// Ends all threads once the queue is empty.
    pub(crate) fn close(&self) {
        lock(&self.shared.state).is_closed = true;
        self.shared.work.notify_all();
    }
}

impl Shared {
    /// Queues a job, and starts a thread if all threads have work. Returns the job if that is not
    /// possible. With other threads, a thread that does not start only delays the job.
    fn push(self: &Arc<Self>, source: JobSource, jobs_max: usize, job: Job) -> Result<(), Job> {
        let mut state = lock(&self.state);
        if state.queue.len() >= jobs_max {
            return Err(job);
        }
        if state.queue.len() >= state.idle && state.threads < self.threads_max {
            let shared = Arc::clone(self);
            let builder = thread::Builder::new().name(self.name.to_owned());
            match builder.spawn(move || shared.work()) {
                Ok(_) => state.threads += 1,
                Err(error) => {
                    tracing::warn!(%error, name = self.name, "cannot start a thread");
                    if state.threads == 0 {
                        return Err(job);
                    }
                }
            }
        }
        state.queue.push(source, job);
        drop(state);
        self.work.notify_one();
        Ok(())
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
    use std::sync::mpsc::channel;

    use super::*;
    use crate::config::Config;
    use crate::runtime::Runtime;

    const THREADS_MAX: usize = 8;
    const JOBS_MAX: usize = 1024;

    #[test]
    fn jobs_run_side_by_side_and_the_excess_is_refused() {
        let runtime = Runtime::new(&Config::default()).expect("a runtime");
        let pool = ThreadPool::new("test", THREADS_MAX);
        let source = JobSource::default();
        let mut releases = Vec::new();
        for _ in 0..THREADS_MAX {
            let (started, is_started) = channel();
            let (release, released) = channel::<()>();
            let job = move || {
                started.send(()).expect("the test waits");
                let _ = released.recv();
            };
            assert!(pool.submit(source, JOBS_MAX, job).1.is_none());
            is_started.recv().expect("each job has a thread");
            releases.push(release);
        }
        for _ in 0..JOBS_MAX {
            assert!(pool.submit(source, JOBS_MAX, || ()).1.is_none());
        }
        assert!(pool.submit(source, JOBS_MAX, || ()).1.is_some());
        drop(releases);
        let done = runtime.block_on(async {
            loop {
                if let Some(value) = pool.try_run(source, JOBS_MAX, || 7).await {
                    break value;
                }
            }
        });
        assert_eq!(done, 7);
        assert!(lock(&pool.shared.state).threads <= THREADS_MAX);
    }
}
