//! Calls that may block and that no driver supports, on the threads of a runtime.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::task::{Poll, Waker};

use crate::fair_queue::JobSource;
use crate::thread_pool::ThreadPool;

/// Limit of the closures of one source that are queued or running; further calls wait. It is large
/// enough to keep all threads busy, and small enough to bound the work that waits for a stuck disk.
const JOBS_MAX: usize = 1024;

/// The threads of one runtime.
pub(crate) struct Blocking {
    threads: ThreadPool,
    /// Number of queued and running closures by source.
    jobs: RefCell<BTreeMap<JobSource, usize>>,
    waiters: RefCell<VecDeque<Waker>>,
}

impl Blocking {
    pub(crate) fn new(threads_max: usize) -> Self {
        Self {
            threads: ThreadPool::new("blocking", threads_max),
            jobs: RefCell::default(),
            waiters: RefCell::default(),
        }
    }

    /// Runs a closure of a source on a thread and waits for its result. Without any thread, it runs
    /// on this one.
    pub(crate) async fn run<T, F>(&self, source: JobSource, closure: F) -> T
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        let _slot = self.slot(source).await;
        let (pending, refused) = self.threads.submit(source, usize::MAX, closure);
        refused.into_iter().for_each(|job| job());
        pending.await
    }

    /// Number of queued and running closures of all sources.
    pub(crate) fn jobs(&self) -> usize {
        self.jobs.borrow().values().sum()
    }

    /// Ends all threads once the queue is empty.
    pub(crate) fn close(&self) {
        self.threads.close();
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

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::config::Config;
    use crate::lock::lock;
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
            assert_eq!(handle.blocking_jobs(), 102);
            drop(open);
            for job in jobs {
                job.await.expect("no panic");
            }
        });
        assert_eq!(handle.blocking_jobs(), 0);
        let order = lock(&order);
        let position = order.iter().position(|member| *member == 2);
        assert_eq!((position.map(|at| at <= 2), order.len()), (Some(true), 102));
    }
}
