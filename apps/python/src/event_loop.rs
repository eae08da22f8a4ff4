//! Operations on an event loop of asyncio. The thread of the loop polls the futures. I/O threads
//! wake it by an eventfd and never wait for the interpreter.

use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use pyo3::prelude::*;
use rustix::event::{EventfdFlags, eventfd};
use slab::Slab;

use crate::pending::{Pending, finish};
use crate::work::Work;

/// The operations of one event loop.
#[pyclass(frozen, module = "smbeam._smbeam")]
pub(crate) struct EventLoop {
    ready: Arc<Ready>,
    tasks: Mutex<Slab<Task>>,
}

struct Task {
    work: Work,
    waker: Waker,
    woken: Arc<Woken>,
    /// The future of asyncio.
    future: Py<PyAny>,
}

/// The tasks to poll.
struct Ready {
    eventfd: OwnedFd,
    keys: Mutex<Vec<usize>>,
}

impl Ready {
    fn push(&self, key: usize) {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        keys.push(key);
        if keys.len() == 1 {
            // It fails only with a full counter, and then the loop wakes anyway.
            let _ = rustix::io::write(&self.eventfd, &1_u64.to_ne_bytes());
        }
    }

    fn take(&self) -> Vec<usize> {
        // An empty counter is no error: the loop may call without an event.
        let _ = rustix::io::read(&self.eventfd, &mut [0_u8; 8]);
        std::mem::take(&mut *self.keys.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The waker of one task.
struct Woken {
    ready: Arc<Ready>,
    key: usize,
    is_queued: AtomicBool,
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_queued.swap(true, Ordering::AcqRel) {
            self.ready.push(self.key);
        }
    }
}

impl EventLoop {
    fn tasks(&self) -> std::sync::MutexGuard<'_, Slab<Task>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Polls a task that is not in the table. Returns it if it is not done.
    fn poll(py: Python<'_>, mut task: Task) -> PyResult<Option<Task>> {
        task.woken.is_queued.store(false, Ordering::Release);
        let mut context = Context::from_waker(&task.waker);
        let Poll::Ready(convert) = task.work.as_mut().poll(&mut context) else {
            return Ok(Some(task));
        };
        let future = task.future.bind(py);
        // The caller may have canceled it.
        if !future.call_method0("done")?.is_truthy()? {
            match finish(py, convert) {
                Ok(value) => future.call_method1("set_result", (value,))?,
                Err(error) => future.call_method1("set_exception", (error,))?,
            };
        }
        Ok(None)
    }
}

#[pymethods]
impl EventLoop {
    #[new]
    fn new() -> PyResult<Self> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let eventfd = eventfd(0, flags).map_err(std::io::Error::from)?;
        Ok(Self {
            ready: Arc::new(Ready {
                eventfd,
                keys: Mutex::default(),
            }),
            tasks: Mutex::default(),
        })
    }

    /// The descriptor that is readable when `run` has something to do.
    fn fileno(&self) -> RawFd {
        self.ready.eventfd.as_fd().as_raw_fd()
    }

    /// Starts an operation with `future` for its result. Returns the number of the operation, or
    /// `None` if it is done.
    fn start(
        &self,
        py: Python<'_>,
        pending: &Pending,
        future: Py<PyAny>,
    ) -> PyResult<Option<usize>> {
        let work = pending.take()?;
        let key = self.tasks().vacant_key();
        let woken = Arc::new(Woken {
            ready: Arc::clone(&self.ready),
            key,
            is_queued: AtomicBool::new(false),
        });
        let task = Task {
            work,
            waker: Waker::from(Arc::clone(&woken)),
            woken,
            future,
        };
        let task = Self::poll(py, task)?;
        // Only the thread of the loop inserts, so the key is still vacant. A waker that was called
        // meanwhile has the right key.
        Ok(task.map(|task| self.tasks().insert(task)))
    }

    /// Polls the operations that can continue.
    fn run(&self, py: Python<'_>) -> PyResult<()> {
        for key in self.ready.take() {
            // A task that was canceled is not there; another one may have its key, and polling it
            // once more does no harm.
            let Some(task) = self.tasks().try_remove(key) else {
                continue;
            };
            if let Some(task) = Self::poll(py, task)? {
                let again = self.tasks().insert(task);
                debug_assert_eq!(again, key, "the key was freed last");
            }
        }
        Ok(())
    }

    /// Cancels an operation: drops its future.
    fn cancel(&self, key: usize) {
        let task = self.tasks().try_remove(key);
        drop(task);
    }
}
