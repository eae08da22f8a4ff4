//! The executor of one worker thread, and the handle to it.

use std::cell::{Cell, OnceCell};
use std::fmt;
use std::future::Future;
use std::io;
use std::os::fd::BorrowedFd;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use crate::blocking::Blocking;
use crate::buffer::Buffers;
use crate::chunk::Chunks;
use crate::config::{Config, Driver, Io, IoReport, Stats};
use crate::epoll::{Direction, Epoll};
use crate::fair_queue::JobSource;
use crate::memory::Mapping;
use crate::probe;
use crate::task::{self, JoinHandle, MAIN, Tasks};
use crate::time::{self, Elapsed, Sleep, Timers};
use crate::udp::Arrivals;
use crate::uring::Uring;
use crate::waker::{self, RuntimeWaker, TaskWaker};

/// The driver in use.
#[expect(clippy::large_enum_variant, reason = "a runtime has one")]
pub(crate) enum Backend {
    /// io_uring: the driver handles completions.
    Uring(Uring),
    /// epoll: the driver waits for readiness.
    Epoll(Epoll),
}

/// The state of a runtime. Handles refer to it.
pub(crate) struct Inner {
    pub(crate) waker: Arc<RuntimeWaker>,
    pub(crate) tasks: Rc<Tasks>,
    pub(crate) timers: Rc<Timers>,
    pub(crate) backend: Backend,
    pub(crate) chunks: Rc<Chunks>,
    pub(crate) buffers: Arc<Buffers>,
    pub(crate) blocking: Blocking,
    pub(crate) stats: Rc<Cell<Stats>>,
    report: IoReport,
    /// Memory for datagrams, allocated with the first UDP socket. Declared after `backend`, which
    /// unregisters the memory before this field frees it.
    arrivals: OnceCell<Rc<Arrivals>>,
}

impl Inner {
    fn new(config: &Config) -> io::Result<Self> {
        let waker = RuntimeWaker::new()?;
        let stats = Rc::new(Cell::new(Stats::default()));
        let (backend, chunks, report) = choose(config, &waker, &stats)?;
        Ok(Self {
            waker,
            tasks: Rc::default(),
            timers: Rc::default(),
            backend,
            chunks,
            buffers: Buffers::new(&config.buffers),
            blocking: Blocking::new(config.blocking_threads),
            stats,
            report,
            arrivals: OnceCell::new(),
        })
    }

    /// Memory for datagrams of all UDP sockets of this runtime.
    pub(crate) fn arrivals(&self) -> io::Result<Rc<Arrivals>> {
        if let Some(arrivals) = self.arrivals.get() {
            return Ok(Rc::clone(arrivals));
        }
        let arrivals = match self.uring() {
            // SAFETY: the cell is empty, so this is the first call; `self` keeps the result and
            // drops the driver before it.
            Some(uring) => unsafe { uring.new_arrivals() }?,
            // SAFETY: without a ring no group is registered.
            None => unsafe { Arrivals::new(None) }?,
        };
        Ok(Rc::clone(self.arrivals.get_or_init(|| Rc::new(arrivals))))
    }

    /// The ring, if there is one.
    pub(crate) fn uring(&self) -> Option<&Uring> {
        match &self.backend {
            Backend::Uring(uring) => Some(uring),
            Backend::Epoll(_) => None,
        }
    }

    /// The epoll instance, if there is one.
    pub(crate) fn epoll(&self) -> Option<&Epoll> {
        match &self.backend {
            Backend::Epoll(epoll) => Some(epoll),
            Backend::Uring(_) => None,
        }
    }

    /// Adds a descriptor to the epoll instance and returns its token. `None` with io_uring.
    pub(crate) fn watch(&self, fd: BorrowedFd<'_>) -> io::Result<Option<usize>> {
        self.epoll().map(|epoll| epoll.add(fd)).transpose()
    }

    /// Ends all waits for a descriptor: abandons its operation (io_uring) or removes its token
    /// (epoll).
    pub(crate) fn release(
        &self,
        operation: Option<usize>,
        source: Option<usize>,
        fd: BorrowedFd<'_>,
    ) {
        if let (Some(key), Some(uring)) = (operation, self.uring()) {
            uring.abandon(key);
        }
        if let (Some(token), Some(epoll)) = (source, self.epoll()) {
            epoll.remove(token, fd);
        }
    }

    pub(crate) fn register_slab(&self, mapping: &Mapping) -> Option<u16> {
        self.uring()?.register_slab(mapping)
    }

    pub(crate) fn unregister_slab(&self, slot: u16) {
        self.uring()
            .expect("only a ring has slots")
            .unregister_slab(slot);
    }
}

type Chosen = (Backend, Rc<Chunks>, IoReport);

fn choose(
    config: &Config,
    waker: &Arc<RuntimeWaker>,
    stats: &Rc<Cell<Stats>>,
) -> io::Result<Chosen> {
    if config.io == Io::Epoll {
        return choose_epoll(config, waker, stats, "requested".to_owned());
    }
    match try_uring(config, waker, stats) {
        Ok(chosen) => Ok(chosen),
        Err(reason) if config.io == Io::Uring => {
            Err(io::Error::new(io::ErrorKind::Unsupported, reason))
        }
        Err(reason) => {
            tracing::info!(%reason, "io_uring is not available, using epoll");
            choose_epoll(config, waker, stats, reason)
        }
    }
}

fn choose_epoll(
    config: &Config,
    waker: &Arc<RuntimeWaker>,
    stats: &Rc<Cell<Stats>>,
    reason: String,
) -> io::Result<Chosen> {
    let epoll = Epoll::new(waker, Rc::clone(stats))?;
    let chunks = Chunks::new(&config.buffers, None)?;
    let report = IoReport {
        driver: Driver::Epoll,
        reason,
    };
    Ok((Backend::Epoll(epoll), chunks, report))
}

fn try_uring(
    config: &Config,
    waker: &Arc<RuntimeWaker>,
    stats: &Rc<Cell<Stats>>,
) -> Result<Chosen, String> {
    let (ring, reason) = probe::set_up(config.entries)?;
    let chunks = Chunks::new(&config.buffers, Some(&ring))
        .map_err(|error| format!("IORING_REGISTER_PBUF_RING: {error}"))?;
    let uring = Uring::new(
        ring,
        Rc::clone(&chunks),
        Arc::clone(waker),
        Rc::clone(stats),
    )
    .map_err(|error| format!("io_uring set-up: {error}"))?;
    let report = IoReport {
        driver: Driver::Uring,
        reason,
    };
    Ok((Backend::Uring(uring), chunks, report))
}

/// A single-threaded executor of tasks with its I/O driver (io_uring or epoll). Create one for each
/// worker thread, on that thread.
///
/// Dropping it drops all tasks, cancels all pending operations and waits until the kernel has
/// released all memory. Later operations on objects that outlive the runtime (for example a
/// [`Stream`](crate::Stream)) fail with ECANCELED.
#[derive(Debug)]
pub struct Runtime {
    handle: Handle,
}

impl Runtime {
    /// Creates a runtime on this thread, which only this thread uses.
    ///
    /// # Errors
    /// The kernel interface that `config` requires is not available, or the system has no memory or
    /// descriptors.
    ///
    /// # Panics
    /// When this thread has a runtime already.
    pub fn new(config: &Config) -> io::Result<Self> {
        let inner = Rc::new(Inner::new(config)?);
        inner.waker.enter_thread(inner.uring().is_some());
        Ok(Self {
            handle: Handle(inner),
        })
    }

    /// Returns the handle of this runtime, which the functions of this crate take to start tasks
    /// and operations.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Returns the kernel interface that the runtime uses, and the reason for the choice.
    #[must_use]
    pub fn io(&self) -> &IoReport {
        &self.handle.0.report
    }

    /// Runs `future` and all tasks on this thread until `future` is done, and returns its output.
    /// Unfinished tasks stay and continue with the next call. Must not be called inside a task of
    /// the runtime.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        let inner = &self.handle.0;
        let main = TaskWaker::new(MAIN, Arc::clone(&inner.waker));
        let waker = Waker::from(main);
        let mut context = Context::from_waker(&waker);
        let mut future = pin!(future);
        waker.wake_by_ref();
        let _running = Running::start(&inner.waker);
        loop {
            let polled = inner.run_tasks(|| future.as_mut().poll(&mut context));
            if let Poll::Ready(output) = polled {
                return output;
            }
            inner.turn();
        }
    }
}

/// Marks the loop of this thread as running until it is dropped.
struct Running<'a>(&'a RuntimeWaker);

impl<'a> Running<'a> {
    fn start(waker: &'a RuntimeWaker) -> Self {
        waker.set_running(true);
        Self(waker)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.set_running(false);
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        let inner = &self.handle.0;
        inner.tasks.clear();
        if let Some(uring) = inner.uring() {
            uring.close();
            inner.buffers.forget_slots();
        }
        inner.blocking.close();
        inner.waker.leave_thread();
    }
}

/// A reference to the runtime of this thread, with which tasks and operations start. It is cheap to
/// clone and cannot leave the thread.
#[derive(Clone)]
pub struct Handle(Rc<Inner>);

impl Handle {
    pub(crate) fn inner(&self) -> &Rc<Inner> {
        &self.0
    }

    /// Starts a task that runs `future` on this thread, at the earliest when the calling task
    /// waits. Await the returned handle for the output. A panic in the task is logged and ends only
    /// that task.
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
    {
        task::spawn(&self.0.tasks, &self.0.waker, future)
    }

    /// Returns a future that is ready after `duration` or a little later.
    pub fn sleep(&self, duration: Duration) -> Sleep {
        self.sleep_until(Instant::now() + duration)
    }

    /// Returns a future that is ready when `deadline` has passed.
    pub fn sleep_until(&self, deadline: Instant) -> Sleep {
        Sleep::new(Rc::clone(&self.0.timers), deadline)
    }

    /// Waits for `future` for at most `duration`, and returns its output.
    ///
    /// # Errors
    /// [`Elapsed`]: the time limit passed first. The future is dropped then.
    pub async fn timeout<F: Future>(
        &self,
        duration: Duration,
        future: F,
    ) -> Result<F::Output, Elapsed> {
        time::timeout(&self.0.timers, duration, future).await
    }

    /// Yields to other tasks: the future is ready after the ready tasks have run, at the latest
    /// after the next turn of the loop.
    pub async fn yield_now(&self) {
        let mut is_first = true;
        std::future::poll_fn(|context| {
            if !std::mem::replace(&mut is_first, false) {
                return Poll::Ready(());
            }
            waker::yield_until_others(context.waker());
            Poll::Pending
        })
        .await;
    }

    /// Runs `closure`, which may block, on another thread and returns its result. If 1024 closures
    /// are queued or running, this function first waits for the end of one. A panic of the closure
    /// continues in the caller. Dropping the future does not stop a queued closure.
    pub async fn blocking<T, F>(&self, closure: F) -> T
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        self.blocking_for(JobSource::default(), closure).await
    }

    /// Runs `closure`, which may block, on another thread and returns its result, as
    /// [`blocking`](Self::blocking) does. The threads serve the closures of all sources in turn, so
    /// that a source with many closures does not delay the others.
    pub async fn blocking_for<T, F>(&self, source: JobSource, closure: F) -> T
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        self.0.blocking.run(source, closure).await
    }

    /// Returns the number of closures of [`blocking`](Self::blocking) and
    /// [`blocking_for`](Self::blocking_for) that wait for a thread or run on one.
    #[must_use]
    pub fn blocking_jobs(&self) -> usize {
        self.0.blocking.jobs()
    }

    /// Returns the kernel interface that the runtime uses, and the reason for the choice.
    #[must_use]
    pub fn io(&self) -> &IoReport {
        &self.0.report
    }

    /// Returns the counters of the runtime since its start.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.0.stats.get()
    }

    /// Returns the number of receive chunks in use: a caller holds them, or they have unread data.
    #[must_use]
    pub fn chunks_out(&self) -> usize {
        self.0.chunks.out()
    }

    /// Returns the number of io_uring operations in flight: started, but not completed by the
    /// kernel. Always 0 with epoll.
    #[must_use]
    pub fn pending_operations(&self) -> usize {
        self.0.uring().map_or(0, Uring::pending)
    }

    /// Waits until epoll reports `direction` of a descriptor ready.
    pub(crate) async fn ready(&self, token: usize, direction: Direction) {
        let epoll = self.0.epoll().expect("only epoll knows readiness");
        std::future::poll_fn(|context| epoll.poll_ready(token, direction, context)).await;
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle")
            .field("io", &self.0.report)
            .finish_non_exhaustive()
    }
}
