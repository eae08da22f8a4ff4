//! Waking a runtime from other threads: a queue of woken tasks, and one signal for many of them.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};

use crate::lock::lock;
use crate::task::MAIN;

thread_local! {
    /// The runtime of this thread: its identity, its ready tasks, its messages to other rings.
    static LOCAL: RefCell<Option<Local>> = const { RefCell::new(None) };
}

struct Local {
    id: u64,
    /// The main future, if it is woken.
    main: Option<Arc<TaskWaker>>,
    /// The other woken tasks.
    ready: VecDeque<Arc<TaskWaker>>,
    /// Futures that yield until the ready tasks were polled.
    yielded: Vec<Waker>,
    /// Rings that the next submit wakes with MSG_RING. `None` when the driver is epoll.
    messages: Option<Vec<Arc<RuntimeWaker>>>,
    /// The loop runs, so a next submit follows.
    is_running: bool,
}

impl Local {
    fn add(&mut self, task: Arc<TaskWaker>) {
        match task.slot {
            MAIN => self.main = Some(task),
            _ => self.ready.push_back(task),
        }
    }
}

/// The waker of a task.
#[derive(Debug)]
pub(crate) struct TaskWaker {
    /// Slot in the task table; `MAIN` for the future of `block_on`.
    pub(crate) slot: usize,
    queued: AtomicBool,
    runtime: Arc<RuntimeWaker>,
}

impl TaskWaker {
    pub(crate) fn new(slot: usize, runtime: Arc<RuntimeWaker>) -> Arc<Self> {
        Arc::new(Self {
            slot,
            queued: AtomicBool::new(false),
            runtime,
        })
    }

    /// Called before a poll: a wake after this call queues the task again.
    pub(crate) fn start_poll(&self) {
        self.queued.store(false, Ordering::SeqCst);
    }

    fn queue(self: &Arc<Self>) {
        if self.queued.swap(true, Ordering::SeqCst) {
            return;
        }
        let is_local = LOCAL.try_with(|local| match &mut *local.borrow_mut() {
            Some(local) if local.id == self.runtime.id => {
                local.add(Arc::clone(self));
                true
            }
            _ => false,
        });
        if is_local != Ok(true) {
            self.runtime.push(Arc::clone(self));
        }
    }
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.queue();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.queue();
    }
}

/// The part of a runtime that other threads use to wake it.
#[derive(Debug)]
pub(crate) struct RuntimeWaker {
    id: u64,
    woken: Mutex<Vec<Arc<TaskWaker>>>,
    has_woken: AtomicBool,
    is_sleeping: AtomicBool,
    is_closed: AtomicBool,
    eventfd: OwnedFd,
    /// A duplicate of the ring's descriptor. It keeps the number from being reused while a message
    /// to the ring is in flight.
    ring: Mutex<Option<Arc<OwnedFd>>>,
}

impl RuntimeWaker {
    pub(crate) fn new() -> io::Result<Arc<Self>> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Ok(Arc::new(Self {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            woken: Mutex::default(),
            has_woken: AtomicBool::new(false),
            is_sleeping: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            eventfd: crate::sys::eventfd()?,
            ring: Mutex::new(None),
        }))
    }

    pub(crate) fn eventfd(&self) -> BorrowedFd<'_> {
        self.eventfd.as_fd()
    }

    pub(crate) fn set_ring(&self, ring: BorrowedFd<'_>) -> io::Result<()> {
        *lock(&self.ring) = Some(Arc::new(ring.try_clone_to_owned()?));
        Ok(())
    }

    /// The ring that a message goes to. The returned reference keeps it open.
    pub(crate) fn ring(&self) -> Option<Arc<OwnedFd>> {
        lock(&self.ring).clone()
    }

    /// Makes this thread the owner of the runtime.
    pub(crate) fn enter_thread(&self, has_ring: bool) {
        LOCAL.with_borrow_mut(|local| {
            assert!(local.is_none(), "a thread has one runtime");
            let messages = has_ring.then(Vec::new);
            *local = Some(Local {
                id: self.id,
                main: None,
                ready: VecDeque::new(),
                yielded: Vec::new(),
                messages,
                is_running: false,
            });
        });
    }

    /// Marks the start or the end of the loop. At the end, messages that miss the last submit use
    /// the eventfd instead.
    pub(crate) fn set_running(&self, is_running: bool) {
        LOCAL.with_borrow_mut(|local| {
            local
                .as_mut()
                .expect("the runtime is on its thread")
                .is_running = is_running;
        });
        if !is_running {
            let left = std::iter::from_fn(next_message);
            left.for_each(|runtime| crate::sys::eventfd_signal(runtime.eventfd()));
        }
    }

    /// Marks the end of the runtime: later wakes have no effect.
    pub(crate) fn leave_thread(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        *lock(&self.ring) = None;
        let woken = std::mem::take(&mut *lock(&self.woken));
        let local = LOCAL.with_borrow_mut(Option::take);
        drop((woken, local));
    }

    /// Announces that the runtime is about to sleep. Returns false when a task is ready, so that it
    /// must not sleep.
    pub(crate) fn prepare_sleep(&self) -> bool {
        self.is_sleeping.store(true, Ordering::SeqCst);
        if self.has_woken.load(Ordering::SeqCst) {
            self.is_sleeping.store(false, Ordering::SeqCst);
            return false;
        }
        true
    }

    /// Announces that the runtime runs and checks its queue itself.
    pub(crate) fn end_sleep(&self) {
        self.is_sleeping.store(false, Ordering::SeqCst);
    }

    /// Moves the tasks that other threads have woken to the ready tasks of this thread.
    pub(crate) fn collect(&self) {
        if !self.has_woken.swap(false, Ordering::SeqCst) {
            return;
        }
        let woken = std::mem::take(&mut *lock(&self.woken));
        LOCAL.with_borrow_mut(|local| {
            let local = local.as_mut().expect("the runtime runs on its thread");
            woken.into_iter().for_each(|task| local.add(task));
        });
    }

    fn push(self: &Arc<Self>, task: Arc<TaskWaker>) {
        if self.is_closed.load(Ordering::SeqCst) {
            return;
        }
        lock(&self.woken).push(task);
        self.has_woken.store(true, Ordering::SeqCst);
        // Only the first of many wakes finds the runtime asleep: one signal is enough for all of
        // them.
        if self.is_sleeping.swap(false, Ordering::SeqCst) && !self.queue_message() {
            crate::sys::eventfd_signal(self.eventfd());
        }
    }

    /// On a thread that runs a ring, the next submit carries the signal: no system call.
    fn queue_message(self: &Arc<Self>) -> bool {
        if lock(&self.ring).is_none() {
            return false;
        }
        LOCAL
            .try_with(|local| match &mut *local.borrow_mut() {
                Some(Local {
                    messages: Some(messages),
                    is_running: true,
                    ..
                }) => {
                    messages.push(Arc::clone(self));
                    true
                }
                _ => false,
            })
            .unwrap_or(false)
    }
}

/// Takes the main future of this thread if it is woken.
pub(crate) fn take_main() -> Option<Arc<TaskWaker>> {
    LOCAL.with_borrow_mut(|local| local.as_mut()?.main.take())
}

/// Takes the next ready task of this thread, futures that yield after all others.
pub(crate) fn next_ready() -> Option<Arc<TaskWaker>> {
    loop {
        let (task, has_yielded) = LOCAL.with_borrow_mut(|local| {
            let Some(local) = local else {
                return (None, false);
            };
            let task = local.ready.pop_front();
            (task, !local.yielded.is_empty())
        });
        if task.is_some() || !has_yielded {
            return task;
        }
        wake_yielded();
    }
}

/// Wakes a future of this thread once the ready tasks were polled, at the latest after the next
/// turn of the loop.
pub(crate) fn yield_until_others(waker: &Waker) {
    LOCAL.with_borrow_mut(|local| {
        if let Some(local) = local {
            local.yielded.push(waker.clone());
        }
    });
}

/// Wakes the futures that yield.
pub(crate) fn wake_yielded() {
    let take = |local: &mut Option<Local>| local.as_mut().map(|it| std::mem::take(&mut it.yielded));
    let yielded = LOCAL.with_borrow_mut(take);
    yielded.into_iter().flatten().for_each(Waker::wake);
}

/// Whether this thread has a ready task.
pub(crate) fn has_ready() -> bool {
    let is_any = |local: &Local| {
        local.main.is_some() || !local.ready.is_empty() || !local.yielded.is_empty()
    };
    LOCAL.with_borrow(|local| local.as_ref().is_some_and(is_any))
}

/// Takes one message for the next submit.
pub(crate) fn next_message() -> Option<Arc<RuntimeWaker>> {
    LOCAL.with_borrow_mut(|local| local.as_mut()?.messages.as_mut()?.pop())
}
