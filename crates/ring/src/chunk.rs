//! Receive chunks: small buffers that the kernel picks when data arrives.

use std::cell::{Cell, RefCell};
use std::io;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use io_uring::IoUring;

use crate::config::PoolConfig;
use crate::memory::{Child, Mapping};
use crate::op::Completion;
use crate::provided::{ENTRIES_MAX, Provided};

/// The group of provided buffers that streams receive into.
pub(crate) const GROUP: u16 = 0;

/// All receive chunks of a runtime.
///
/// A chunk is either free (in the kernel's ring, or in `free` with epoll) or out (an unread
/// completion or a [`Chunk`]). Only the holder of a chunk that is out accesses its memory.
pub(crate) struct Chunks {
    memory: Mapping,
    count: u16,
    chunk_bytes: usize,
    /// The ring shared with the kernel.
    ring: Option<Provided>,
    free: RefCell<Vec<u16>>,
    out: Cell<usize>,
    waiters: RefCell<Vec<Waker>>,
}

impl Chunks {
    /// Chunks for epoll, or for a ring if `ring` is given.
    pub(crate) fn new(config: &PoolConfig, ring: Option<&IoUring>) -> io::Result<Rc<Self>> {
        let (count, chunk_bytes) = (config.chunks, config.chunk_bytes);
        assert!(
            count.is_power_of_two(),
            "the number of chunks is a power of two"
        );
        assert!(
            count <= ENTRIES_MAX,
            "the number of chunks is at most 32768"
        );
        assert!(chunk_bytes > 0, "a chunk holds something");
        assert_eq!(chunk_bytes % 4096, 0, "a chunk is made of whole pages");
        let memory = Mapping::new(usize::from(count) * chunk_bytes, Child::HasNothing)?;
        let entries = match ring {
            // SAFETY: the driver, which owns a reference to the chunks, unregisters the group
            // before it drops that reference (uring.rs).
            Some(ring) => Some(unsafe { Provided::register(ring, count, GROUP) }?),
            None => None,
        };
        let chunks = Self {
            memory,
            count,
            chunk_bytes,
            ring: entries,
            free: RefCell::default(),
            out: Cell::new(usize::from(count)),
            waiters: RefCell::default(),
        };
        (0..count).for_each(|id| chunks.give_back(id));
        Ok(Rc::new(chunks))
    }

    /// Takes a free chunk. Only for epoll: with io_uring the kernel picks chunks.
    pub(crate) fn take(self: &Rc<Self>) -> Option<Chunk> {
        let id = self.free.borrow_mut().pop()?;
        self.note_taken();
        Some(self.chunk(id, self.chunk_bytes))
    }

    /// Records that the kernel has put data into a chunk.
    pub(crate) fn note_taken(&self) {
        self.out.set(self.out.get() + 1);
        assert!(
            self.out.get() <= usize::from(self.count),
            "a chunk is out once"
        );
    }

    /// The chunk of a recorded completion with `length` bytes.
    pub(crate) fn chunk(self: &Rc<Self>, id: u16, length: usize) -> Chunk {
        assert!(id < self.count, "a chunk id is in its group");
        assert!(length <= self.chunk_bytes, "data fits its chunk");
        Chunk {
            storage: Storage::Group(Rc::clone(self), id),
            start: 0,
            end: length,
        }
    }

    /// The data of a completion: its chunk, or the copy of it.
    pub(crate) fn received(self: &Rc<Self>, completion: Completion) -> Option<Chunk> {
        if let Some(bytes) = completion.spilled {
            let end = bytes.len();
            return Some(Chunk {
                storage: Storage::Heap(bytes.into_vec()),
                start: 0,
                end,
            });
        }
        let length = usize::try_from(completion.result).unwrap_or(0);
        completion.chunk.map(|id| self.chunk(id, length))
    }

    /// Copies the data of an unread completion and frees its chunk.
    pub(crate) fn spill(self: &Rc<Self>, completion: &mut Completion) {
        if let Some(id) = completion.chunk.take() {
            let length = usize::try_from(completion.result).unwrap_or(0);
            completion.spilled = Some(Box::from(&*self.chunk(id, length)));
        }
    }

    /// Whether no chunk is free.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.out.get() == usize::from(self.count)
    }

    /// Frees a chunk.
    pub(crate) fn give_back(&self, id: u16) {
        assert!(id < self.count, "a chunk id is in its group");
        assert!(self.out.get() > 0, "only a chunk that is out is freed");
        match &self.ring {
            // SAFETY: the chunk was out, so it is not in the ring, and its memory lives as long as
            // the ring; from here on only the kernel accesses it.
            Some(ring) => unsafe { ring.provide(id, self.start(id), self.chunk_bytes) },
            None => self.free.borrow_mut().push(id),
        }
        self.out.set(self.out.get() - 1);
        let waiters = std::mem::take(&mut *self.waiters.borrow_mut());
        waiters.into_iter().for_each(Waker::wake);
    }

    /// Ready when a chunk is free.
    pub(crate) fn poll_free(&self, context: &mut Context<'_>) -> Poll<()> {
        if !self.is_exhausted() {
            return Poll::Ready(());
        }
        let mut waiters = self.waiters.borrow_mut();
        if !waiters.iter().any(|waker| waker.will_wake(context.waker())) {
            waiters.push(context.waker().clone());
        }
        Poll::Pending
    }

    /// Number of chunks that are not free.
    pub(crate) fn out(&self) -> usize {
        self.out.get()
    }

    fn start(&self, id: u16) -> NonNull<u8> {
        self.memory.at(usize::from(id) * self.chunk_bytes)
    }
}

/// Bytes that the kernel received from a stream, in memory of the runtime. It dereferences to
/// `[u8]`; an empty chunk means end of stream.
///
/// Dropping the chunk returns its memory to the runtime. The number of chunks is limited
/// ([`PoolConfig::chunks`]): a caller that waits for the rest of a message copies the bytes and
/// drops the chunk.
pub struct Chunk {
    storage: Storage,
    start: usize,
    end: usize,
}

/// The memory of a chunk.
enum Storage {
    /// A chunk of the runtime's group.
    Group(Rc<Chunks>, u16),
    /// A copy, because the group was exhausted, or bytes that come from another transport.
    Heap(Vec<u8>),
}

impl From<Vec<u8>> for Chunk {
    /// Bytes from a transport outside this crate.
    fn from(bytes: Vec<u8>) -> Self {
        let end = bytes.len();
        Self {
            storage: Storage::Heap(bytes),
            start: 0,
            end,
        }
    }
}

impl Chunk {
    /// The chunk that stands for end of stream.
    pub(crate) fn end_of_stream() -> Self {
        Self {
            storage: Storage::Heap(Vec::new()),
            start: 0,
            end: 0,
        }
    }

    /// Removes the first `count` bytes from the front of the chunk.
    ///
    /// # Panics
    /// The chunk has fewer bytes.
    pub fn advance(&mut self, count: usize) {
        assert!(count <= self.len(), "a chunk is not advanced past its end");
        self.start += count;
    }

    /// Keeps the first `length` bytes.
    pub(crate) fn truncate(&mut self, length: usize) {
        assert!(length <= self.len(), "a chunk only gets shorter");
        self.end = self.start + length;
    }
}

impl Deref for Chunk {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let (chunks, id) = match &self.storage {
            Storage::Group(chunks, id) => (chunks, *id),
            Storage::Heap(bytes) => return &bytes[self.start..self.end],
        };
        let start = chunks.start(id).as_ptr();
        // SAFETY: the chunk is out and exclusively ours, mapped as long as `storage` lives, and
        // initialized (zeroed by mmap); `end` was checked against its size at creation.
        let whole = unsafe { std::slice::from_raw_parts(start, self.end) };
        &whole[self.start..]
    }
}

impl DerefMut for Chunk {
    fn deref_mut(&mut self) -> &mut [u8] {
        let (chunks, id) = match &mut self.storage {
            Storage::Group(chunks, id) => (chunks, *id),
            Storage::Heap(bytes) => return &mut bytes[self.start..self.end],
        };
        let start = chunks.start(id).as_ptr();
        // SAFETY: as in `deref`; `&mut self` makes the reference exclusive.
        let whole = unsafe { std::slice::from_raw_parts_mut(start, self.end) };
        &mut whole[self.start..]
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        if let Storage::Group(chunks, id) = &self.storage {
            chunks.give_back(*id);
        }
    }
}

impl std::fmt::Debug for Chunk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Chunk")
            .field("length", &self.len())
            .finish_non_exhaustive()
    }
}
