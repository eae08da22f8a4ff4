//! Large buffers: size classes carved from slabs that are registered with the ring.

use std::fmt;
use std::io;
use std::ops::{Deref, DerefMut, Range};
use std::process;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex};
use std::task::Waker;
use std::time::Instant;

use slab::Slab;

use crate::config::PoolConfig;
use crate::lock::lock;
use crate::memory::{Child, Mapping, Memory};
use crate::shares::{self, Shares, Starved};

/// Number of bytes by which a pool buffer is longer than a power of two (16 KiB to 4 MiB). A
/// response of that length and its header then fit into one buffer. Buffers of 8 MiB have 64 KiB
/// more instead.
pub const HEADROOM_BYTES: usize = 4 << 10;

/// Buffer sizes in bytes, ascending.
const CLASSES: [usize; 6] = [
    (16 << 10) + HEADROOM_BYTES,
    (64 << 10) + HEADROOM_BYTES,
    (256 << 10) + HEADROOM_BYTES,
    (1 << 20) + HEADROOM_BYTES,
    (4 << 20) + HEADROOM_BYTES,
    (8 << 20) + (64 << 10),
];

/// Bytes of a slab for more than one buffer: one huge page for the small classes.
const SLAB_BYTES: usize = 2 << 20;

/// Slots in the ring's table of fixed buffers. One slot is one slab, so this is 2 GiB of the
/// smallest classes. Further slabs work without registration.
pub(crate) const SLOTS_MAX: u16 = 1024;

/// The state that the [`Pool`](crate::Pool) and every [`Buffer`] share.
///
/// Taking or returning a buffer locks the state for one push or pop, so any thread may drop a
/// buffer. The lock is almost never contended: one thread takes buffers, and other threads return
/// few of them.
pub(crate) struct Buffers {
    state: Mutex<State>,
    /// The process that created the buffers, if a child process may inherit them.
    process: Option<u32>,
}

struct State {
    limit_bytes: usize,
    /// As in [`PoolConfig`].
    registered: bool,
    used_bytes: usize,
    out: usize,
    /// Bytes of all buffers that are not free.
    out_bytes: usize,
    slabs: Slab<SlabMemory>,
    /// Free buffers by class. The last returned one is taken first, because its bytes are in the
    /// cache.
    free: [Vec<Location>; CLASSES.len()],
    /// Requests without a holder that wait.
    waiters: Vec<Waker>,
    /// The holders, and their waiting requests.
    shares: Shares,
}

#[derive(Clone, Copy)]
struct Location {
    slab: usize,
    index: usize,
}

struct SlabMemory {
    memory: Memory,
    class: usize,
    /// Slot in the ring's table of fixed buffers.
    slot: Option<u16>,
    /// Number of buffers carved from the start of the slab. The memory after them is untouched.
    carved: usize,
    out: usize,
    /// No buffer of the slab was taken since the last [`Buffers::trim`].
    is_unused: bool,
}

impl SlabMemory {
    fn has_space(&self) -> bool {
        (self.carved + 1) * CLASSES[self.class] <= self.memory.bytes()
    }
}

type Register<'a> = &'a dyn Fn(&Mapping) -> Option<u16>;
type Unregister<'a> = &'a dyn Fn(u16);

impl Buffers {
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
            shares: Shares::default(),
        };
        Arc::new(Self {
            state: Mutex::new(state),
            process: (!config.registered).then(process::id),
        })
    }

    /// The largest length in bytes that a buffer can have.
    pub(crate) fn largest(&self) -> usize {
        let limit = lock(&self.state).limit_bytes;
        CLASSES
            .into_iter()
            .rev()
            .find(|bytes| *bytes <= limit)
            .unwrap_or(0)
    }

    /// Bytes of memory that the pool has taken from the system.
    pub(crate) fn used_bytes(&self) -> usize {
        lock(&self.state).used_bytes
    }

    /// Number of buffers that callers and operations hold.
    pub(crate) fn out(&self) -> usize {
        lock(&self.state).out
    }

    /// Takes a buffer of at least `len` bytes. `register` puts a new slab into the ring's table of
    /// fixed buffers, `unregister` removes one.
    pub(crate) fn take(
        self: &Arc<Self>,
        len: usize,
        register: Register<'_>,
        unregister: Unregister<'_>,
    ) -> Option<Buffer> {
        let class = class_of(len)?;
        let mut state = lock(&self.state);
        let location = state.locate(class, register, unregister)?;
        Some(self.buffer(&mut state, location, None))
    }

    /// Takes a buffer of at least `len` bytes for a holder, if its shares allow that.
    pub(crate) fn take_for(
        self: &Arc<Self>,
        holder: usize,
        len: usize,
        register: Register<'_>,
        unregister: Unregister<'_>,
    ) -> Option<Buffer> {
        let class = class_of(len)?;
        let mut state = lock(&self.state);
        let memory = state.memory();
        if !state.shares.may_take(holder, CLASSES[class], memory) {
            return None;
        }
        let location = state.locate(class, register, unregister)?;
        Some(self.buffer(&mut state, location, Some(holder)))
    }

    /// Takes a buffer for the waiting request with this number, once it is its turn. The request
    /// then waits no longer, and the next one is woken.
    pub(crate) fn take_in_turn(
        self: &Arc<Self>,
        (holder, number): (usize, u64),
        len: usize,
        register: Register<'_>,
        unregister: Unregister<'_>,
    ) -> Option<Buffer> {
        let class = class_of(len)?;
        let mut state = lock(&self.state);
        let memory = state.memory();
        if !state.shares.is_next(holder, number, memory) {
            return None;
        }
        let location = state.locate(class, register, unregister)?;
        state.shares.withdraw(holder, number);
        let buffer = self.buffer(&mut state, location, Some(holder));
        let next = state.next_waker();
        drop(state);
        next.into_iter().for_each(Waker::wake);
        Some(buffer)
    }

    fn buffer(
        self: &Arc<Self>,
        state: &mut State,
        location: Location,
        holder: Option<usize>,
    ) -> Buffer {
        state.out += 1;
        let slab = &mut state.slabs[location.slab];
        slab.out += 1;
        slab.is_unused = false;
        let bytes = CLASSES[slab.class];
        state.out_bytes += bytes;
        holder
            .into_iter()
            .for_each(|key| state.shares.taken(key, bytes));
        let slab = &state.slabs[location.slab];
        Buffer {
            start: slab.memory.mapping().at(location.index * bytes),
            memory: slab.memory.clone(),
            bytes,
            slot: slab.slot,
            location,
            holder,
            shared: Arc::clone(self),
        }
    }

    /// Adds a holder and returns its key.
    pub(crate) fn add_holder(&self) -> usize {
        lock(&self.state).shares.add()
    }

    /// Removes a holder. Its buffers stay valid.
    pub(crate) fn remove_holder(&self, holder: usize) {
        lock(&self.state).shares.remove(holder);
    }

    /// Moves a holder to another group.
    pub(crate) fn set_group(&self, holder: usize, group: u64) {
        lock(&self.state).shares.set_group(holder, group);
    }

    /// Bytes of the buffers of a holder.
    pub(crate) fn bytes_of(&self, holder: usize) -> usize {
        lock(&self.state).shares.bytes_of(holder)
    }

    /// Adds a request of a holder to the waiting ones, or updates its waker. Returns its number.
    pub(crate) fn wait_for(
        &self,
        holder: usize,
        number: Option<u64>,
        len: usize,
        waker: &Waker,
    ) -> u64 {
        let bytes = class_of(len).map_or(len, |class| CLASSES[class]);
        let shares = &mut lock(&self.state).shares;
        match number {
            Some(number) => {
                shares.update(holder, number, waker);
                number
            }
            None => shares.wait(holder, bytes, Instant::now(), waker),
        }
    }

    /// Removes a waiting request, and wakes the next one.
    pub(crate) fn withdraw(&self, holder: usize, number: u64) {
        let mut state = lock(&self.state);
        state.shares.withdraw(holder, number);
        let next = state.next_waker();
        drop(state);
        next.into_iter().for_each(Waker::wake);
    }

    /// A holder without a buffer that waits for one.
    pub(crate) fn starved(&self) -> Option<Starved> {
        let state = lock(&self.state);
        state.shares.starved(state.memory())
    }

    /// Returns slabs to the system of which no buffer was taken since the last call.
    pub(crate) fn trim(&self, unregister: Unregister<'_>) {
        let mut state = lock(&self.state);
        let is_unused = |slab: &SlabMemory| slab.out == 0 && slab.is_unused;
        let slabs = state.slabs.iter().filter(|(_, slab)| is_unused(slab));
        let unused: Vec<usize> = slabs.map(|(key, _)| key).collect();
        let freed: Vec<SlabMemory> = unused.into_iter().map(|key| state.remove(key)).collect();
        for (_, slab) in &mut state.slabs {
            slab.is_unused = true;
        }
        drop(state);
        let slots = freed.iter().filter_map(|slab| slab.slot);
        slots.for_each(unregister);
    }

    /// Wakes `waker` when a buffer is free again.
    pub(crate) fn wait(&self, waker: &Waker) {
        let mut state = lock(&self.state);
        if !state.waiters.iter().any(|waiter| waiter.will_wake(waker)) {
            state.waiters.push(waker.clone());
        }
    }

    fn give_back(&self, location: Location, holder: Option<usize>) {
        // A child process takes no buffers, and the fork may have copied the lock while it was
        // held.
        if self.process.is_some_and(|it| it != process::id()) {
            return;
        }
        let mut state = lock(&self.state);
        state.out -= 1;
        let slab = &mut state.slabs[location.slab];
        slab.out -= 1;
        let class = slab.class;
        state.out_bytes -= CLASSES[class];
        state.free[class].push(location);
        holder
            .into_iter()
            .for_each(|key| state.shares.returned(key, CLASSES[class]));
        let waiters = std::mem::take(&mut state.waiters);
        let next = state.next_waker();
        drop(state);
        waiters.into_iter().chain(next).for_each(Waker::wake);
    }

    /// Forgets all slots, after the end of the ring and its registrations.
    pub(crate) fn forget_slots(&self) {
        lock(&self.state)
            .slabs
            .iter_mut()
            .for_each(|(_, slab)| slab.slot = None);
    }
}

impl State {
    fn memory(&self) -> shares::Memory {
        shares::Memory {
            limit: self.limit_bytes,
            free: self.limit_bytes.saturating_sub(self.out_bytes),
        }
    }

    /// The waker of the waiting request that is next.
    fn next_waker(&self) -> Option<Waker> {
        self.shares.next_waker(self.memory())
    }

    fn locate(
        &mut self,
        class: usize,
        register: Register<'_>,
        unregister: Unregister<'_>,
    ) -> Option<Location> {
        match self.pop(class) {
            Some(location) => Some(location),
            None => self.carve(class, register, unregister),
        }
    }

    fn pop(&mut self, class: usize) -> Option<Location> {
        self.free[class].pop()
    }

    fn carve(
        &mut self,
        class: usize,
        register: Register<'_>,
        unregister: Unregister<'_>,
    ) -> Option<Location> {
        let bytes = CLASSES[class];
        if self.used_bytes + bytes > self.limit_bytes {
            self.reclaim(bytes, unregister);
        }
        if self.used_bytes + bytes > self.limit_bytes {
            // The limit allows no more buffers of this size, but a larger one may be free.
            return (class + 1..CLASSES.len()).find_map(|larger| self.pop(larger));
        }
        let slab = self.slab_with_space(class, register)?;
        let memory = &mut self.slabs[slab];
        let index = memory.carved;
        memory.carved += 1;
        self.used_bytes += bytes;
        Some(Location { slab, index })
    }

    fn slab_with_space(&mut self, class: usize, register: Register<'_>) -> Option<usize> {
        let with_space = |slab: &SlabMemory| slab.class == class && slab.has_space();
        if let Some((key, _)) = self.slabs.iter().find(|(_, slab)| with_space(slab)) {
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
            is_unused: false,
        }))
    }

    /// Returns idle slabs to the system until `wanted` bytes fit, or no slab is idle.
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
            let slab = self.remove(key);
            slab.slot.into_iter().for_each(unregister);
        }
    }

    /// Removes an idle slab. The caller removes its slot.
    fn remove(&mut self, key: usize) -> SlabMemory {
        let slab = self.slabs.remove(key);
        assert_eq!(slab.out, 0, "an idle slab has no buffer in use");
        self.free[slab.class].retain(|location| location.slab != key);
        self.used_bytes -= slab.carved * CLASSES[slab.class];
        slab
    }
}

/// The smallest class with buffers of at least `len` bytes.
fn class_of(len: usize) -> Option<usize> {
    CLASSES.iter().position(|bytes| len <= *bytes)
}

/// Registration pins whole slabs, so a slab of a large class holds exactly one buffer. In a slab
/// that is not pinned, only used buffers have pages.
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

/// Exclusively owned memory from the [`Pool`](crate::Pool). It dereferences to a `[u8]` with the
/// whole buffer, which is at least as long as the caller requested. Dropping the buffer, on any
/// thread, returns it to the pool.
pub struct Buffer {
    start: NonNull<u8>,
    bytes: usize,
    slot: Option<u16>,
    location: Location,
    /// Key of the holder that the buffer counts for.
    holder: Option<usize>,
    /// The slab. It stays mapped until the last buffer of it is dropped, also after the pool has
    /// released it.
    memory: Memory,
    shared: Arc<Buffers>,
}

// SAFETY: a buffer is the only way to its bytes (its location is not in a free list while it
// lives), the memory is not bound to a thread, and returning it goes through a mutex.
unsafe impl Send for Buffer {}
// SAFETY: a shared reference gives read access to plain bytes only.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Returns the memory block of the pool that contains this buffer. An RDMA device registers the
    /// whole block once.
    #[must_use]
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Returns whether more than half of the pool's memory limit is in use. A caller that would
    /// hold the buffer until a peer acts must then release it, so that others get buffers.
    #[must_use]
    pub fn is_scarce(&self) -> bool {
        let state = lock(&self.shared.state);
        state.out_bytes > state.limit_bytes / 2
    }

    /// The slot in the table of fixed buffers, if `pool` has registered it there.
    pub(crate) fn slot(&self, pool: &Arc<Buffers>) -> Option<u16> {
        self.slot.filter(|_| Arc::ptr_eq(pool, &self.shared))
    }

    /// Pointer to the start of `range`, which must be inside. For operations that own `self`.
    pub(crate) fn pointer(&mut self, range: &Range<usize>) -> *mut u8 {
        self[range.clone()].as_mut_ptr()
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `start..start + bytes` is inside one slab (asserted when carved), which stays
        // mapped while `memory` refers to it; the memory is initialized (zeroed by mmap) and
        // exclusively owned. The kernel writes to it only while an operation owns the buffer.
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
        self.shared.give_back(self.location, self.holder);
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
