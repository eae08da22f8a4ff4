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
use crate::memory::Mapping;
use crate::probe;
use crate::task::{self, JoinHandle, MAIN, Tasks};
use crate::time::{self, Elapsed, Sleep, Timers};
use crate::udp::Arrivals;
use crate::uring::Uring;
use crate::waker::{RuntimeWaker, TaskWaker};

/// The driver in use.
#[expect(clippy::large_enum_variant, reason = "a runtime has one")]
pub(crate) enum Backend {
    /// Completions.
    Uring(Uring),
    /// Readiness.
    Epoll(Epoll),
}

/// Everything of a runtime; reached through handles.
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
    /// Memory for datagrams, once there is a socket for them. After `backend`: a ring forgets it
    /// before it goes.
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

    /// Memory for datagrams.
    pub(crate) fn arrivals(&self) -> io::Result<Rc<Arrivals>> {
        if let Some(arrivals) = self.arrivals.get() {
            return Ok(Rc::clone(arrivals));
        }
        let arrivals = match self.uring() {
            // SAFETY: asked for where there is none yet; `self` keeps it and drops the driver
            // first.
            Some(uring) => unsafe { uring.new_arrivals() }?,
            // SAFETY: without a ring nothing is registered.
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

    /// Has a descriptor watched where the driver is epoll; tells its token.
    pub(crate) fn watch(&self, fd: BorrowedFd<'_>) -> io::Result<Option<usize>> {
        self.epoll().map(|epoll| epoll.add(fd)).transpose()
    }

    /// Nobody waits for a descriptor any more: not for the operation under way on it (io_uring),
    /// nor by its token (epoll).
    pub(crate) fn let_go(
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
        return choose_epoll(config, waker, stats, "asked for".to_owned());
    }
    match try_uring(config, waker, stats) {
        Ok(chosen) => Ok(chosen),
        Err(reason) if config.io == Io::Uring => {
            Err(io::Error::new(io::ErrorKind::Unsupported, reason))
        }
        Err(reason) => {
            tracing::info!(%reason, "io_uring is not to be had, using epoll");
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

/// A single-threaded executor with its driver. Make one per worker thread, on that thread.
///
/// Dropping it drops all tasks, cancels what is under way and waits until the kernel has let go
/// of all memory. What outlives it (a [`Stream`](crate::Stream) kept elsewhere on the thread)
/// fails with ECANCELED.
#[derive(Debug)]
pub struct Runtime {
    handle: Handle,
}

impl Runtime {
    /// Sets a runtime up for this thread, which must not have one already.
    pub fn new(config: &Config) -> io::Result<Self> {
        let inner = Rc::new(Inner::new(config)?);
        inner.waker.enter_thread(inner.uring().is_some());
        Ok(Self {
            handle: Handle(inner),
        })
    }

    /// The handle that everything else takes.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Which driver was chosen, and why.
    #[must_use]
    pub fn io(&self) -> &IoReport {
        &self.handle.0.report
    }

    /// Runs `future` and all tasks until `future` is done. Tasks that are left stay, and go on
    /// with the next call.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        let inner = &self.handle.0;
        let main = TaskWaker::new(MAIN, Arc::clone(&inner.waker));
        let waker = Waker::from(main);
        let mut context = Context::from_waker(&waker);
        let mut future = pin!(future);
        let mut is_woken = true;
        let _running = Running::start(&inner.waker);
        loop {
            if is_woken && let Poll::Ready(output) = future.as_mut().poll(&mut context) {
                return output;
            }
            is_woken = inner.run_tasks();
            inner.turn(is_woken);
        }
    }
}

/// Tells the thread that its loop runs, until it is dropped.
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

/// A reference to the runtime of this thread. Cheap to clone; it cannot leave the thread.
#[derive(Clone)]
pub struct Handle(Rc<Inner>);

impl Handle {
    pub(crate) fn inner(&self) -> &Rc<Inner> {
        &self.0
    }

    /// Starts a task. A panic in it is logged and ends that task alone.
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
    {
        task::spawn(&self.0.tasks, &self.0.waker, future)
    }

    /// Waits for at least `duration`.
    pub fn sleep(&self, duration: Duration) -> Sleep {
        self.sleep_until(Instant::now() + duration)
    }

    /// Waits until `deadline` has passed.
    pub fn sleep_until(&self, deadline: Instant) -> Sleep {
        Sleep::new(Rc::clone(&self.0.timers), deadline)
    }

    /// Runs `future` for at most `duration`, then drops it.
    pub async fn timeout<F: Future>(
        &self,
        duration: Duration,
        future: F,
    ) -> Result<F::Output, Elapsed> {
        time::timeout(&self.0.timers, duration, future).await
    }

    /// Lets all other ready tasks run once.
    pub async fn yield_now(&self) {
        let mut is_first = true;
        std::future::poll_fn(|context| {
            if !std::mem::replace(&mut is_first, false) {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }

    /// Runs `closure` on another thread and waits for its result. When all threads are busy and
    /// the queue is full, it waits for room first. A panic of the closure continues here.
    /// Dropping the future does not stop a closure that has been queued.
    pub async fn blocking<T, F>(&self, closure: F) -> T
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        self.0.blocking.run(closure).await
    }

    /// Which driver was chosen, and why.
    #[must_use]
    pub fn io(&self) -> &IoReport {
        &self.0.report
    }

    /// Counters since the start.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.0.stats.get()
    }

    /// Receive chunks that are not free: held, or received and not yet read.
    #[must_use]
    pub fn chunks_out(&self) -> usize {
        self.0.chunks.out()
    }

    /// Operations that the kernel has not finished. Stays 0 with epoll.
    #[must_use]
    pub fn pending_operations(&self) -> usize {
        self.0.uring().map_or(0, Uring::pending)
    }

    /// Waits until epoll says that a socket may go on.
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
