//! A ring of provided buffers: memory that the kernel picks from when data arrives.

use std::cell::Cell;
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::IoUring;
use io_uring::types::BufRingEntry;

use crate::memory::{Child, Mapping};

/// Most entries of a ring of provided buffers. io_uring_register_buf_ring(3).
pub(crate) const ENTRIES_MAX: u16 = 1 << 15;

/// The ring that the kernel shares: entries, and a tail that only this process writes.
pub(crate) struct Provided {
    entries: Mapping,
    count: u16,
    tail: Cell<u16>,
}

impl Provided {
    /// Registers an empty ring of `count` entries, a power of two, as `group`.
    ///
    /// # Safety
    ///
    /// The caller unregisters the group before it drops the result.
    pub(crate) unsafe fn register(ring: &IoUring, count: u16, group: u16) -> io::Result<Self> {
        assert!(count.is_power_of_two() && count <= ENTRIES_MAX);
        let entries = Mapping::new(
            usize::from(count) * size_of::<BufRingEntry>(),
            Child::HasNothing,
        )?;
        let address = entries.start().as_ptr() as u64;
        let submitter = ring.submitter();
        // SAFETY: the mapping holds `count` zeroed entries, and the caller guarantees that it
        // outlives the registration.
        unsafe { submitter.register_buf_ring_with_flags(address, count, group, 0) }?;
        Ok(Self {
            entries,
            count,
            tail: Cell::new(0),
        })
    }

    /// Gives `bytes` bytes at `start` to the kernel as buffer `id`, which is below the count.
    ///
    /// # Safety
    ///
    /// The buffer is not in the ring. Nothing accesses its memory, which stays allocated, until a
    /// completion names it or the group is unregistered.
    pub(crate) unsafe fn provide(&self, id: u16, start: NonNull<u8>, bytes: usize) {
        assert!(id < self.count, "a buffer's number is in its group");
        let (tail, mask) = (self.tail.get(), self.count - 1);
        let base = self.entries.start().cast::<BufRingEntry>();
        // SAFETY: the masked tail is below `count`, and the mapping holds `count` entries.
        let slot = unsafe { base.add(usize::from(tail & mask)) };
        // SAFETY: the kernel only reads entries between its head and this tail. At most `count`
        // buffers exist and this one was out, so the slot at the tail is not among them; the memory
        // was zeroed, which is a valid entry. This thread makes no other reference to it.
        let entry = unsafe { &mut *slot.as_ptr() };
        entry.set_addr(start.as_ptr() as u64);
        entry.set_len(u32::try_from(bytes).expect("a provided buffer is small"));
        entry.set_bid(id);
        self.tail.set(tail.wrapping_add(1));
        // SAFETY: `base` is the page-aligned start of the registered, zeroed ring.
        let shared = unsafe { BufRingEntry::tail(base.as_ptr()) };
        // SAFETY: the tail is a properly aligned u16 in memory that `entries` keeps mapped; the
        // kernel only reads it, and no Rust reference to it lives now.
        let shared = unsafe { AtomicU16::from_ptr(shared.cast_mut()) };
        // Release: the kernel sees the entry before it sees the tail that covers it.
        shared.store(self.tail.get(), Ordering::Release);
    }
}
