//! Large buffers: size classes carved from slabs that are registered with the ring.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::ops::{Deref, DerefMut, Range};
use std::process;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

use slab::Slab;

use crate::config::PoolConfig;
use crate::memory::{Child, Mapping, Memory};
use crate::runtime::Handle;
use crate::waker::lock;

/// Bytes beyond the round size of a class: a reply's head and its payload share one buffer, and
/// the payload can start on a page. The largest class has 64 KiB.
pub const HEAD_ROOM_BYTES: usize = 4 << 10;

/// Buffer sizes in bytes, ascending.
const CLASSES: [usize; 6] = [
    (16 << 10) + HEAD_ROOM_BYTES,
    (64 << 10) + HEAD_ROOM_BYTES,
    (256 << 10) + HEAD_ROOM_BYTES,
    (1 << 20) + HEAD_ROOM_BYTES,
    (4 << 20) + HEAD_ROOM_BYTES,
    (8 << 20) + (64 << 10),
];

/// Bytes of a slab that holds more than one buffer: one huge page for the small classes.
const SLAB_BYTES: usize = 2 << 20;

/// Slots in the ring's table of fixed buffers. One slot is one slab, so this is 2 GiB of the
/// smallest classes; slabs beyond it work unregistered.
pub(crate) const SLOTS_MAX: u16 = 1024;

/// The buffers of one runtime. A cheap clone refers to the same buffers.
///
/// A buffer that was used before still has its old bytes: who sends one fills it first.
#[derive(Clone, Debug)]
pub struct Pool {
    handle: Handle,
}

impl Pool {
    pub(crate) fn new(handle: Handle) -> Self {
        Self { handle }
    }

    /// The largest length in bytes that a buffer can have.
    #[must_use]
    pub fn largest(&self) -> usize {
        let limit = lock(&self.handle.inner().buffers.state).limit_bytes;
        CLASSES
            .into_iter()
            .rev()
            .find(|bytes| *bytes <= limit)
            .unwrap_or(0)
    }

    /// Takes a buffer of at least `len` bytes; None when the limit is reached.
    #[must_use]
    pub fn take(&self, len: usize) -> Option<Buffer> {
        let inner = self.handle.inner();
        let register = |mapping: &Mapping| inner.register_slab(mapping);
        let unregister = |slot| inner.unregister_slab(slot);
        inner.buffers.take(len, &register, &unregister)
    }

    /// Takes a buffer of at least `len` bytes and waits for one while the limit is reached.
    /// `len` must not exceed [`largest`](Self::largest).
    pub async fn take_or_wait(&self, len: usize) -> Buffer {
        assert!(
            len <= self.largest(),
            "a buffer of {len} bytes can never be had"
        );
        poll_fn(|context| {
            // Register first: a buffer may come back on another thread between the two steps.
            self.handle.inner().buffers.wait(context.waker());
            match self.take(len) {
                Some(buffer) => Poll::Ready(buffer),
                None => Poll::Pending,
            }
        })
        .await
    }

    /// Bytes that the pool has taken from the system.
    #[must_use]
    pub fn used_bytes(&self) -> usize {
        lock(&self.handle.inner().buffers.state).used_bytes
    }

    /// Buffers that are in somebody's hands.
    #[must_use]
    pub fn buffers_out(&self) -> usize {
        lock(&self.handle.inner().buffers.state).out
    }
}

/// What [`Pool`] and every [`Buffer`] share.
///
/// The lock is taken for a push or a pop when a buffer is taken or returned, so that a buffer
/// may be dropped on any thread. It is nearly never contended: one thread takes, and few returns
/// come from others.
pub(crate) struct Shared {
    state: Mutex<State>,
    /// The process that made it, where a child may have its buffers.
    process: Option<u32>,
}

struct State {
    limit_bytes: usize,
    /// As in [`PoolConfig`].
    registered: bool,
    used_bytes: usize,
    out: usize,
    /// Bytes of those that are out.
    out_bytes: usize,
    slabs: Slab<SlabMemory>,
    /// Returned buffers by class, last in first out: the cache is warm.
    free: [Vec<Place>; CLASSES.len()],
    waiters: Vec<Waker>,
}

#[derive(Clone, Copy)]
struct Place {
    slab: usize,
    index: usize,
}

struct SlabMemory {
    memory: Memory,
    class: usize,
    /// Where the ring's table of fixed buffers has it.
    slot: Option<u16>,
    /// How many buffers have been carved from the start on; memory beyond is untouched.
    carved: usize,
    out: usize,
}

impl SlabMemory {
    fn has_room(&self) -> bool {
        (self.carved + 1) * CLASSES[self.class] <= self.memory.bytes()
    }
}

type Register<'a> = &'a dyn Fn(&Mapping) -> Option<u16>;
type Unregister<'a> = &'a dyn Fn(u16);

impl Shared {
    pub(crate) fn new(config: &PoolConfig) -> Arc<Self> {
        let state = State {
            limit_bytes: config.total_bytes,
            registered: config.registered,
            used_bytes: 0,
            out: 0,
            out_bytes: 0,
            slabs: Slab::new(),
            free: Default::default(),
            waiters: Vec::new(),
        };
        Arc::new(Self {
            state: Mutex::new(state),
            process: (!config.registered).then(process::id),
        })
    }

    fn take(
        self: &Arc<Self>,
        len: usize,
        register: Register<'_>,
        unregister: Unregister<'_>,
    ) -> Option<Buffer> {
        let class = CLASSES.iter().position(|bytes| len <= *bytes)?;
        let mut state = lock(&self.state);
        let place = match state.pop(class) {
            Some(place) => place,
            None => state.carve(class, register, unregister)?,
        };
        state.out += 1;
        let slab = &mut state.slabs[place.slab];
        slab.out += 1;
        let bytes = CLASSES[slab.class];
        state.out_bytes += bytes;
        let slab = &state.slabs[place.slab];
        Some(Buffer {
            start: slab.memory.mapping().at(place.index * bytes),
            memory: slab.memory.clone(),
            bytes,
            slot: slab.slot,
            place,
            shared: Arc::clone(self),
        })
    }

    fn wait(&self, waker: &Waker) {
        let mut state = lock(&self.state);
        if !state.waiters.iter().any(|waiter| waiter.will_wake(waker)) {
            state.waiters.push(waker.clone());
        }
    }

    fn give_back(&self, place: Place) {
        // Of a child nobody takes any, and the lock is as it was when the process forked.
        if self.process.is_some_and(|it| it != process::id()) {
            return;
        }
        let mut state = lock(&self.state);
        state.out -= 1;
        let slab = &mut state.slabs[place.slab];
        slab.out -= 1;
        let class = slab.class;
        state.out_bytes -= CLASSES[class];
        state.free[class].push(place);
        let waiters = std::mem::take(&mut state.waiters);
        drop(state);
        waiters.into_iter().for_each(Waker::wake);
    }

    /// The ring is gone and its registrations with it: forget the slots.
    pub(crate) fn forget_slots(&self) {
        lock(&self.state)
            .slabs
            .iter_mut()
            .for_each(|(_, slab)| slab.slot = None);
    }
}

impl State {
    fn pop(&mut self, class: usize) -> Option<Place> {
        self.free[class].pop()
    }

    fn carve(
        &mut self,
        class: usize,
        register: Register<'_>,
        unregister: Unregister<'_>,
    ) -> Option<Place> {
        let bytes = CLASSES[class];
        if self.used_bytes + bytes > self.limit_bytes {
            self.reclaim(bytes, unregister);
        }
        if self.used_bytes + bytes > self.limit_bytes {
            // Nothing of this size can be had any more, but perhaps something larger lies idle.
            return (class + 1..CLASSES.len()).find_map(|larger| self.pop(larger));
        }
        let slab = self.slab_with_room(class, register)?;
        let memory = &mut self.slabs[slab];
        let index = memory.carved;
        memory.carved += 1;
        self.used_bytes += bytes;
        Some(Place { slab, index })
    }

    fn slab_with_room(&mut self, class: usize, register: Register<'_>) -> Option<usize> {
        let with_room = |slab: &SlabMemory| slab.class == class && slab.has_room();
        if let Some((key, _)) = self.slabs.iter().find(|(_, slab)| with_room(slab)) {
            return Some(key);
        }
        let memory = map_slab(class, self.registered).ok()?;
        let slot = self.registered.then(|| register(memory.mapping()));
        let slot = slot.flatten();
        Some(self.slabs.insert(SlabMemory {
            memory,
            class,
            slot,
            carved: 0,
            out: 0,
        }))
    }

    /// Gives idle slabs back to the system until `wanted` bytes fit, or none is idle.
    fn reclaim(&mut self, wanted: usize, unregister: Unregister<'_>) {
        while self.used_bytes + wanted > self.limit_bytes {
            let is_idle = |slab: &SlabMemory| slab.out == 0 && slab.carved > 0;
            let Some(key) = self
                .slabs
                .iter()
                .find(|(_, s)| is_idle(s))
                .map(|(key, _)| key)
            else {
                return;
            };
            let slab = self.slabs.remove(key);
            self.free[slab.class].retain(|place| place.slab != key);
            self.used_bytes -= slab.carved * CLASSES[slab.class];
            slab.slot.into_iter().for_each(unregister);
        }
    }
}

/// Registration pins whole slabs, so a large class has one buffer a slab and nothing beside it. Of
/// a slab that is not pinned only the buffers that are used get pages.
fn map_slab(class: usize, registered: bool) -> io::Result<Memory> {
    let bytes = CLASSES[class];
    let child = match registered {
        true => Child::HasNothing,
        false => Child::HasBytes,
    };
    match (bytes * 2 > SLAB_BYTES, registered) {
        (true, _) => Memory::for_child(bytes, child),
        (false, true) => Memory::for_child(SLAB_BYTES, child),
        (false, false) => Memory::small(SLAB_BYTES, child),
    }
}

/// Memory from the [`Pool`], exclusively owned; dereferences to `[u8]` of its whole size, which
/// is at least what was asked for. Goes back to its pool on drop, on whatever thread that is.
pub struct Buffer {
    start: NonNull<u8>,
    bytes: usize,
    slot: Option<u16>,
    place: Place,
    /// The slab, kept mapped also where it is given up meanwhile.
    memory: Memory,
    shared: Arc<Shared>,
}

// SAFETY: a buffer is the only way to its bytes (its place is not in a free list while it lives),
// the memory has no ties to a thread, and giving it back goes through a mutex.
unsafe impl Send for Buffer {}
// SAFETY: a shared reference gives read access to plain bytes only.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// The memory that this is part of: the same for all buffers of one slab.
    #[must_use]
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Whether more than half of its pool's memory is in somebody's hands: who keeps a buffer for
    /// as long as a peer pleases takes care that others find some.
    #[must_use]
    pub fn is_scarce(&self) -> bool {
        let state = lock(&self.shared.state);
        state.out_bytes > state.limit_bytes / 2
    }

    /// The slot in the table of fixed buffers, if `pool` is the one that registered it there.
    pub(crate) fn slot(&self, pool: &Arc<Shared>) -> Option<u16> {
        self.slot.filter(|_| Arc::ptr_eq(pool, &self.shared))
    }

    /// Pointer to the start of `range`, which must lie inside. For operations that own `self`.
    pub(crate) fn pointer(&mut self, range: &Range<usize>) -> *mut u8 {
        self[range.clone()].as_mut_ptr()
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `start..start + bytes` lies in one slab (asserted when carved), which stays
        // mapped while one of its buffers is out; the memory is initialised (zeroed by mmap) and
        // ours alone. The kernel writes to it only while an operation owns the buffer.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`; `&mut self` makes the reference exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.shared.give_back(self.place);
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer")
            .field("bytes", &self.bytes)
            .field("slot", &self.slot)
            .finish_non_exhaustive()
    }
}
