//! The io_uring driver: one ring, the table of operations, one enter per turn.

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use io_uring::squeue::Entry;
use io_uring::{IoUring, cqueue, opcode, types};
use slab::Slab;

use crate::buffer::SLOTS_MAX;
use crate::chunk::{Chunks, GROUP};
use crate::config::{Stats, count};
use crate::memory::Mapping;
use crate::op::{Completion, EVENTFD, Hold, IGNORE, Op, WAKE};
use crate::udp::{self, Arrivals};
use crate::wait::Wait;
use crate::waker::{self, RuntimeWaker};

/// The driver. It belongs to one thread.
pub(crate) struct Uring {
    ops: RefCell<Slab<Op>>,
    /// Completions of one wake-up. The vector is reused.
    batch: RefCell<Vec<cqueue::Entry>>,
    /// Free slots in the table of fixed buffers.
    slots: RefCell<Vec<u16>>,
    is_closed: Cell<bool>,
    /// Whether the ring has memory for datagrams registered.
    has_arrivals: Cell<bool>,
    stats: Rc<Cell<Stats>>,
    waker: Arc<RuntimeWaker>,
    ring: RefCell<IoUring>,
    /// Declared after `ring`: the memory is unmapped after the ring is closed. See also `close`.
    chunks: Rc<Chunks>,
}

impl Uring {
    pub(crate) fn new(
        ring: IoUring,
        chunks: Rc<Chunks>,
        waker: Arc<RuntimeWaker>,
        stats: Rc<Cell<Stats>>,
    ) -> io::Result<Self> {
        // SAFETY: the ring is open and stays open during the call, which only duplicates the
        // descriptor.
        let fd = unsafe { BorrowedFd::borrow_raw(ring.as_raw_fd()) };
        waker.set_ring(fd.as_fd())?;
        let has_slots = ring
            .submitter()
            .register_buffers_sparse(u32::from(SLOTS_MAX))
            .is_ok();
        let slots = if has_slots {
            (0..SLOTS_MAX).rev().collect()
        } else {
            Vec::new()
        };
        let uring = Self {
            ops: RefCell::default(),
            batch: RefCell::default(),
            slots: RefCell::new(slots),
            is_closed: Cell::new(false),
            has_arrivals: Cell::new(false),
            stats,
            waker,
            ring: RefCell::new(ring),
            chunks,
        };
        uring.watch_eventfd();
        Ok(uring)
    }

    /// Queues an operation. The end of the turn submits it.
    ///
    /// # Safety
    ///
    /// `hold` owns every pointer and descriptor in `entry`. The memory has an address that does not
    /// change when `hold` moves. Nothing else accesses that memory until `hold` returns with the
    /// last completion.
    pub(crate) unsafe fn submit(&self, entry: Entry, hold: Hold) -> usize {
        let mut op = Op::new(hold);
        if self.is_closed.get() {
            op.push(Completion::new(-libc::ECANCELED, None));
            op.is_finished = true;
            return self.ops.borrow_mut().insert(op);
        }
        let key = self.ops.borrow_mut().insert(op);
        // SAFETY: the caller guarantees the contract for the entry; the table owns `hold` until the
        // last completion, and `close` waits for that before the table is dropped.
        unsafe { self.push(&entry.user_data(key as u64)) };
        key
    }

    /// Takes the next completion of an operation. The last completion returns the hold, and `key`
    /// is invalid after it.
    pub(crate) fn poll(
        &self,
        key: usize,
        context: &mut Context<'_>,
    ) -> Poll<(Completion, Option<Hold>)> {
        let mut ops = self.ops.borrow_mut();
        let op = &mut ops[key];
        let Some(completion) = op.pop() else {
            assert!(!op.is_finished, "the last completion ends an operation");
            op.waker = Some(context.waker().clone());
            return Poll::Pending;
        };
        let is_last = op.is_finished && op.unread() == 0;
        Poll::Ready((completion, is_last.then(|| ops.remove(key).hold)))
    }

    /// Asks the kernel to cancel an operation. The last completion still follows.
    pub(crate) fn cancel(&self, key: usize) {
        let mut ops = self.ops.borrow_mut();
        let op = &mut ops[key];
        if op.is_finished || op.is_canceled {
            return;
        }
        op.is_canceled = true;
        drop(ops);
        let entry = opcode::AsyncCancel::new(key as u64)
            .build()
            .user_data(IGNORE);
        // SAFETY: a cancel refers to no memory.
        unsafe { self.push(&entry) };
    }

    /// Abandons an operation that no future awaits any more: cancels it, and drops its hold after
    /// its last completion.
    pub(crate) fn abandon(&self, key: usize) {
        let mut ops = self.ops.borrow_mut();
        let op = &mut ops[key];
        op.is_orphan = true;
        let waker = op.waker.take();
        let unread: Vec<_> = std::iter::from_fn(|| op.pop()).collect();
        unread
            .iter()
            .for_each(|completion| self.dispose(&op.hold, completion));
        let finished = op.is_finished.then(|| ops.remove(key));
        let is_finished = finished.is_some();
        drop(ops);
        drop((waker, finished));
        if !is_finished {
            self.cancel(key);
        }
    }

    /// Submits all queued entries, waits for `wait` at most, and dispatches all completions.
    pub(crate) fn turn(&self, wait: Wait) -> io::Result<()> {
        self.queue_messages();
        let result = self.enter(wait);
        self.dispatch();
        result
    }

    /// Cancels all operations and waits until the kernel has released all memory.
    pub(crate) fn close(&self) {
        self.is_closed.set(true);
        let keys: Vec<_> = self.ops.borrow().iter().map(|(key, _)| key).collect();
        keys.into_iter().for_each(|key| self.cancel(key));
        while self.ops.borrow().iter().any(|(_, op)| !op.is_finished) {
            self.turn(Wait::Forever)
                .expect("a ring can be waited on while it is open");
        }
        let ring = self.ring.borrow();
        // A peer runtime may hold a duplicate of the ring's descriptor for a moment, so closing the
        // descriptor does not make the kernel release this memory.
        let result = ring.submitter().unregister_buf_ring(GROUP);
        assert!(
            result.is_ok(),
            "the group of provided buffers was registered: {result:?}"
        );
        if self.has_arrivals.get() {
            let result = ring.submitter().unregister_buf_ring(udp::GROUP);
            assert!(result.is_ok(), "the group was registered: {result:?}");
        }
        let _ = ring.submitter().unregister_buffers();
        self.slots.borrow_mut().clear();
    }

    /// Registers a slab of the pool. `None` when the table or the memory limit is full.
    pub(crate) fn register_slab(&self, mapping: &Mapping) -> Option<u16> {
        let slot = self.slots.borrow_mut().pop()?;
        let start = mapping.start().as_ptr().cast();
        let iovec = libc::iovec {
            iov_base: start,
            iov_len: mapping.bytes(),
        };
        let ring = self.ring.borrow();
        // SAFETY: the pool's slab owns the mapping and calls `unregister_slab` before it unmaps it;
        // the kernel pins the pages until then.
        let result = unsafe {
            ring.submitter()
                .register_buffers_update(u32::from(slot), &[iovec], None)
        };
        if let Err(error) = result {
            tracing::debug!(%error, "cannot register a slab of the buffer pool");
            self.slots.borrow_mut().push(slot);
            return None;
        }
        Some(slot)
    }

    /// Empties a slot of the table of fixed buffers.
    pub(crate) fn unregister_slab(&self, slot: u16) {
        let iovec = libc::iovec {
            iov_base: std::ptr::null_mut(),
            iov_len: 0,
        };
        let ring = self.ring.borrow();
        // SAFETY: an empty entry refers to no memory.
        let result = unsafe {
            ring.submitter()
                .register_buffers_update(u32::from(slot), &[iovec], None)
        };
        assert!(
            result.is_ok(),
            "a registered slot can be emptied: {result:?}"
        );
        self.slots.borrow_mut().push(slot);
    }

    /// Registers memory for datagrams.
    ///
    /// # Safety
    ///
    /// The caller calls this once, and keeps the result at least as long as the driver.
    pub(crate) unsafe fn new_arrivals(&self) -> io::Result<Arrivals> {
        if self.is_closed.get() {
            return Err(io::Error::from_raw_os_error(libc::ECANCELED));
        }
        // SAFETY: `close` unregisters the group, and the driver calls `close` before it is dropped.
        let arrivals = unsafe { Arrivals::new(Some(&self.ring.borrow())) }?;
        self.has_arrivals.set(true);
        Ok(arrivals)
    }

    /// Registers the calling thread's credentials.
    pub(crate) fn register_personality(&self) -> io::Result<u16> {
        self.ring.borrow().submitter().register_personality()
    }

    /// Unregisters credentials. The kernel looks them up when it takes an entry from the queue, so
    /// this first submits all queued entries.
    pub(crate) fn unregister_personality(&self, id: u16) -> io::Result<()> {
        self.enter(Wait::No)?;
        self.ring.borrow().submitter().unregister_personality(id)
    }

    /// Whether the runtime has ended.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.get()
    }

    /// Number of operations that the kernel has not finished.
    pub(crate) fn pending(&self) -> usize {
        self.ops
            .borrow()
            .iter()
            .filter(|(_, op)| !op.is_finished)
            .count()
    }

    /// Pushes an entry into the submission queue, and submits the queue when it is full.
    ///
    /// # Safety
    ///
    /// As for `submit`, or the entry refers to no memory.
    unsafe fn push(&self, entry: &Entry) {
        loop {
            let mut ring = self.ring.borrow_mut();
            // SAFETY: the caller guarantees the contract for the entry.
            let result = unsafe { ring.submission().push(entry) };
            drop(ring);
            if result.is_ok() {
                return count(&self.stats, |stats| stats.sqes += 1);
            }
            if self.enter(Wait::No).is_err() {
                self.dispatch();
            }
        }
    }

    fn enter(&self, wait: Wait) -> io::Result<()> {
        let mut ring = self.ring.borrow_mut();
        let is_idle = ring.submission().is_empty() && !ring.submission().taskrun();
        if wait == Wait::No && is_idle && !ring.submission().cq_overflow() {
            return Ok(());
        }
        count(&self.stats, |stats| stats.enters += 1);
        let result = match wait {
            Wait::No => ring.submit(),
            Wait::Forever => ring.submit_and_wait(1),
            Wait::For(duration) => submit_and_wait_for(&ring, duration),
        };
        match result {
            Ok(_) => Ok(()),
            // The wait timed out, a signal arrived, or the kernel needs free completion entries:
            // the next turn continues.
            Err(error) => match error.raw_os_error() {
                Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN) => Ok(()),
                _ => Err(error),
            },
        }
    }

    fn dispatch(&self) {
        let mut batch = self.batch.take();
        batch.extend(self.ring.borrow_mut().completion());
        count(&self.stats, |stats| stats.cqes += batch.len() as u64);
        for entry in batch.drain(..) {
            match entry.user_data() {
                WAKE | IGNORE => {}
                EVENTFD if cqueue::more(entry.flags()) => {}
                EVENTFD => self.watch_eventfd(),
                key => self.complete(key as usize, &entry),
            }
        }
        self.batch.replace(batch);
        if self.chunks.is_exhausted() {
            self.spill();
        }
    }

    /// Frees all chunks with unread data by copying the data. A stream that does not read (its
    /// owner is paused, or waits for another stream) must not block the receives of the others.
    /// `UNREAD_MAX` bounds the chunks that one stream holds.
    fn spill(&self) {
        for (_, op) in self.ops.borrow_mut().iter_mut() {
            if matches!(op.hold, Hold::Datagrams(..)) {
                continue;
            }
            op.unread_mut()
                .for_each(|completion| self.chunks.spill(completion));
        }
    }

    fn complete(&self, key: usize, entry: &cqueue::Entry) {
        let chunk = cqueue::buffer_select(entry.flags());
        let completion = Completion::new(entry.result(), chunk);
        let mut ops = self.ops.borrow_mut();
        let op = ops
            .get_mut(key)
            .expect("a completion belongs to an operation");
        if chunk.is_some() && !matches!(op.hold, Hold::Datagrams(..)) {
            self.chunks.note_taken();
        }
        op.is_finished = !cqueue::more(entry.flags());
        if op.is_orphan {
            self.dispose(&op.hold, &completion);
            let finished = op.is_finished.then(|| ops.remove(key));
            drop(ops);
            return drop(finished);
        }
        op.push(completion);
        let waker = op.waker.take();
        let is_flooded = op.is_flooded();
        drop(ops);
        if is_flooded {
            self.cancel(key);
        }
        waker.into_iter().for_each(std::task::Waker::wake);
    }

    /// Releases the resources of a completion that no future takes.
    fn dispose(&self, hold: &Hold, completion: &Completion) {
        match (completion.chunk, hold) {
            (Some(id), Hold::Datagrams(_, arrivals)) => arrivals.give_back(id),
            (Some(id), _) => self.chunks.give_back(id),
            (None, _) => {}
        }
        match hold {
            Hold::Accept(_) if completion.result >= 0 => {
                drop(crate::sys::own_from_completion(completion.result));
            }
            Hold::Message(waker, _) if completion.result < 0 => {
                crate::sys::eventfd_signal(waker.eventfd());
            }
            _ => {}
        }
    }

    fn queue_messages(&self) {
        while let Some(waker) = waker::next_message() {
            let Some(ring) = waker.ring() else { continue };
            let entry = message_entry(ring.as_raw_fd());
            // SAFETY: the entry refers to no memory, only to the descriptor that the hold owns.
            let key = unsafe { self.submit(entry, Hold::Message(waker, ring)) };
            let mut ops = self.ops.borrow_mut();
            let op = &mut ops[key];
            op.is_orphan = true;
            // The ring is closed, so the kernel never sees the message: signal the eventfd instead.
            let finished = op.is_finished.then(|| ops.remove(key));
            drop(ops);
            if let Some(Op {
                hold: Hold::Message(waker, _),
                ..
            }) = finished
            {
                crate::sys::eventfd_signal(waker.eventfd());
            }
        }
    }

    fn watch_eventfd(&self) {
        if self.is_closed.get() {
            return;
        }
        let fd = types::Fd(self.waker.eventfd().as_raw_fd());
        let poll = opcode::PollAdd::new(fd, libc::POLLIN as u32).multi(true);
        // SAFETY: a poll refers to no memory; the kernel itself keeps the file alive.
        unsafe { self.push(&poll.build().user_data(EVENTFD)) };
    }
}

impl Drop for Uring {
    /// Closes the ring also when a panic has cut the runtime's own drop short: the memory of an
    /// operation must stay allocated while the kernel works on it.
    fn drop(&mut self) {
        if !self.is_closed.get() {
            self.close();
        }
        if self.pending() > 0 {
            tracing::error!(
                "cannot end all operations of the ring, so cannot free their memory: aborting"
            );
            std::process::abort();
        }
    }
}

/// The entry that wakes another ring. That ring receives a completion with user data `WAKE`.
fn message_entry(ring: RawFd) -> Entry {
    opcode::MsgRingData::new(types::Fd(ring), 0, WAKE, None).build()
}

fn submit_and_wait_for(ring: &IoUring, duration: Duration) -> io::Result<usize> {
    let time = types::Timespec::from(duration);
    let arguments = types::SubmitArgs::new().timespec(&time);
    ring.submitter().submit_with_args(1, &arguments)
}
