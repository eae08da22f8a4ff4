//! Threads for the parts of a login that may block: the user file, look-ups of Unix accounts (which
//! may ask a directory server), and mechanisms that block.
//!
//! A slow login delays neither a worker nor the threads for file operations.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::thread;
use std::time::Duration;

/// Most threads. Directory servers answer in milliseconds; a stuck one delays all logins anyway.
const THREADS_MAX: usize = 8;
/// Most queued jobs. The server refuses further logins.
const JOBS_MAX: usize = 1024;
/// Time after which an idle thread ends.
const IDLE_MAX: Duration = Duration::from_secs(10);

type Job = Box<dyn FnOnce() + Send>;

/// Threads for the parts of a login that may block. They have the credentials of the process.
#[derive(Default)]
pub(crate) struct LoginThreads {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    work: Condvar,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Job>,
    threads: usize,
    idle: usize,
}

/// The result of a job, once it is there.
struct Reply<T> {
    outcome: Option<thread::Result<Option<T>>>,
    waker: Option<Waker>,
}

impl LoginThreads {
    /// Runs a closure on a thread and waits for its result. `None` if too many jobs wait, or if no
    /// thread with the credentials of the process can be started.
    ///
    /// # Panics
    /// The closure has panicked.
    pub(crate) async fn run<T, F>(&self, closure: F) -> Option<T>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        let reply = Arc::new(Mutex::new(Reply {
            outcome: None,
            waker: None,
        }));
        let answer = Arc::clone(&reply);
        let job = move || {
            // A new thread inherits the credentials of the thread that starts it.
            let closure = || vfs::identity::own().is_ok().then(closure);
            let outcome = catch_unwind(AssertUnwindSafe(closure));
            let mut reply = lock(&answer);
            reply.outcome = Some(outcome);
            let waker = reply.waker.take();
            drop(reply);
            waker.into_iter().for_each(Waker::wake);
        };
        if !self.shared.push(Box::new(job)) {
            return None;
        }
        let outcome = poll_fn(|context| {
            let mut reply = lock(&reply);
            if let Some(outcome) = reply.outcome.take() {
                return Poll::Ready(outcome);
            }
            reply.waker = Some(context.waker().clone());
            Poll::Pending
        });
        match outcome.await {
            Ok(value) => value,
            Err(panic) => resume_unwind(panic),
        }
    }
}

impl Shared {
    /// Queues a job, and starts a thread if all are busy. Returns false if that is not possible.
    fn push(self: &Arc<Self>, job: Job) -> bool {
        let mut state = lock(&self.state);
        if state.queue.len() >= JOBS_MAX {
            return false;
        }
        if state.queue.len() >= state.idle && state.threads < THREADS_MAX {
            let shared = Arc::clone(self);
            let thread = thread::Builder::new().name("login".to_owned());
            match thread.spawn(move || shared.work()) {
                Ok(_) => state.threads += 1,
                Err(_) if state.threads == 0 => return false,
                // The other threads do the job later.
                Err(_) => {}
            }
        }
        state.queue.push_back(job);
        drop(state);
        self.work.notify_one();
        true
    }

    /// Runs jobs until none has been queued for a while.
    fn work(&self) {
        let mut state = lock(&self.state);
        loop {
            if let Some(job) = state.queue.pop_front() {
                drop(state);
                job();
                state = lock(&self.state);
                continue;
            }
            state.idle += 1;
            let waited = self.work.wait_timeout(state, IDLE_MAX);
            let (waited, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            state = waited;
            state.idle -= 1;
            if timeout.timed_out() && state.queue.is_empty() {
                state.threads -= 1;
                return;
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn jobs_run_side_by_side_and_the_excess_is_refused() {
        let runtime = ring::Runtime::new(&ring::Config::default()).expect("a runtime");
        let threads = LoginThreads::default();
        let mut releases = Vec::new();
        for _ in 0..THREADS_MAX {
            let (started, is_started) = channel();
            let (release, released) = channel::<()>();
            let job = move || {
                started.send(()).expect("the test waits");
                let _ = released.recv();
            };
            assert!(threads.shared.push(Box::new(job)));
            is_started.recv().expect("each job has a thread");
            releases.push(release);
        }
        for _ in 0..JOBS_MAX {
            assert!(threads.shared.push(Box::new(|| ())));
        }
        assert!(!threads.shared.push(Box::new(|| ())));
        drop(releases);
        let done = runtime.block_on(async {
            loop {
                if let Some(value) = threads.run(|| 7).await {
                    break value;
                }
            }
        });
        assert_eq!(done, 7);
        assert!(lock(&threads.shared.state).threads <= THREADS_MAX);
    }
}
