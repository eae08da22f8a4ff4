//! Tasks: the futures of requests of the kernel.
//!
//! A thread that reads requests polls each new task once, which sends its first request to the
//! server. The threads of this module continue the tasks that wait for a response. So no number of
//! waiting requests keeps a thread from the next one: a READ is answered while an open waits for
//! another client, and the invalidation of pages can wait for that READ.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Wake, Waker};
use std::thread::{Builder, JoinHandle};

use crate::handles::lock;

type Future = Pin<Box<dyn std::future::Future<Output = ()> + Send>>;

/// Runs tasks. Dropping it ends its threads; tasks that wait are dropped with their last waker.
pub(crate) struct Executor {
    queue: Arc<Queue>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Queue {
    inner: Mutex<Inner>,
    is_ready: Condvar,
}

#[derive(Default)]
struct Inner {
    tasks: VecDeque<Arc<Task>>,
    is_closed: bool,
}

struct Task {
    queue: Arc<Queue>,
    /// `None` after its end.
    future: Mutex<Option<Future>>,
    is_queued: AtomicBool,
}

impl Executor {
    /// Starts `threads` threads.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub(crate) fn new(threads: usize) -> io::Result<Self> {
        let queue = Arc::new(Queue::default());
        let start = |index| {
            let queue = Arc::clone(&queue);
            let name = format!("mount-{index}");
            Builder::new().name(name).spawn(move || queue.work())
        };
        let threads = (0..threads).map(start).collect::<io::Result<_>>()?;
        Ok(Self { queue, threads })
    }

    /// Runs a task. The first part runs on this thread.
    pub(crate) fn spawn(&self, future: impl std::future::Future<Output = ()> + Send + 'static) {
        let task = Arc::new(Task {
            queue: Arc::clone(&self.queue),
            future: Mutex::new(Some(Box::pin(future))),
            is_queued: AtomicBool::new(false),
        });
        task.run();
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        lock(&self.queue.inner).is_closed = true;
        self.queue.is_ready.notify_all();
        for thread in self.threads.drain(..) {
            // A thread that panicked has no task any more.
            let _ = thread.join();
        }
    }
}

impl Queue {
    fn work(&self) {
        while let Some(task) = self.next() {
            task.run();
        }
    }

    fn next(&self) -> Option<Arc<Task>> {
        let mut inner = lock(&self.inner);
        loop {
            if let Some(task) = inner.tasks.pop_front() {
                return Some(task);
            }
            if inner.is_closed {
                return None;
            }
            inner = match self.is_ready.wait(inner) {
                Ok(inner) => inner,
                Err(poisoned) => poisoned.into_inner(),
            };
        }
    }

    fn push(&self, task: Arc<Task>) {
        lock(&self.inner).tasks.push_back(task);
        self.is_ready.notify_one();
    }
}

impl Task {
    fn run(self: &Arc<Self>) {
        // A wake from here on queues the task again.
        self.is_queued.store(false, Ordering::SeqCst);
        let mut slot = lock(&self.future);
        let Some(future) = slot.as_mut() else {
            return;
        };
        let waker = Waker::from(Arc::clone(self));
        if future
            .as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_ready()
        {
            *slot = None;
        }
    }
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        if !self.is_queued.swap(true, Ordering::SeqCst) {
            let queue = Arc::clone(&self.queue);
            queue.push(self);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::mpsc;
    use std::task::Poll;

    use super::*;

    #[test]
    fn a_task_begins_on_the_thread_that_starts_it_and_continues_on_another() {
        let executor = Executor::new(2).expect("threads");
        let (sender, receiver) = mpsc::channel();
        let mut polls = 0;
        executor.spawn(poll_fn(move |context| {
            polls += 1;
            let _ = sender.send(std::thread::current().id());
            if polls == 3 {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        }));
        let threads: Vec<_> = receiver.iter().collect();
        assert_eq!(threads.len(), 3, "the sender is dropped at the end");
        assert_eq!(threads[0], std::thread::current().id());
        assert!(threads[1..].iter().all(|thread| *thread != threads[0]));
    }

    #[test]
    fn waiting_tasks_do_not_keep_others_from_running() {
        let executor = Executor::new(1).expect("a thread");
        for _ in 0..100 {
            executor.spawn(std::future::pending());
        }
        let (sender, receiver) = mpsc::channel();
        executor.spawn(async move {
            let _ = sender.send(());
        });
        assert_eq!(receiver.recv(), Ok(()));
    }
}
