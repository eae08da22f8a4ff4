//! Small pieces of memory of equal size, for SENDs and receives.

use std::cell::RefCell;
use std::fmt;
use std::io;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;

use ring::Memory;

/// The size of a slot is a multiple of this: a cache line, so that slots share none.
const ALIGNMENT: usize = 64;

/// A fixed number of pieces of memory (slots) of equal length for SENDs and receives. One
/// allocation contains all of them, so a device registers them together. Clones refer to the same
/// slots.
#[derive(Clone)]
pub struct Slots {
    shared: Rc<Shared>,
}

struct Shared {
    memory: Memory,
    /// Bytes from the start of one slot to the start of the next.
    stride: usize,
    /// Length of a slot in bytes.
    bytes: usize,
    free: RefCell<Vec<usize>>,
}

impl Slots {
    /// Allocates memory for `count` slots of `bytes` bytes each.
    ///
    /// # Errors
    /// The system has no memory.
    ///
    /// # Panics
    /// `count` or `bytes` is 0.
    pub fn new(count: usize, bytes: usize) -> io::Result<Self> {
        assert!(count > 0 && bytes > 0, "a slot has bytes");
        let stride = bytes.next_multiple_of(ALIGNMENT);
        let memory = Memory::new(count * stride)?;
        Ok(Self {
            shared: Rc::new(Shared {
                memory,
                stride,
                bytes,
                free: RefCell::new((0..count).rev().collect()),
            }),
        })
    }

    /// Takes a free slot; `None` if all slots are in use. The slot still has the bytes of its last
    /// use.
    #[must_use]
    pub fn take(&self) -> Option<Slot> {
        let index = self.shared.free.borrow_mut().pop()?;
        Some(Slot {
            index,
            shared: Rc::clone(&self.shared),
        })
    }

    /// Returns the number of free slots, which [`take`](Self::take) can return.
    #[must_use]
    pub fn free(&self) -> usize {
        self.shared.free.borrow().len()
    }
}

/// A supply of pieces of memory (slots) for SENDs and receives that allocates in two steps: a few
/// slots at first, and all others when those are in use. The device pins the memory, and most
/// connections need few slots.
#[derive(Debug)]
pub struct Stock {
    first: usize,
    most: usize,
    /// Length of a slot in bytes.
    bytes: usize,
    made: RefCell<Vec<Slots>>,
}

impl Stock {
    /// Makes a stock of up to `most` slots of `bytes` bytes each. The first use allocates memory
    /// for `first` slots, later use for all of them.
    ///
    /// # Panics
    /// `first` or `most` is 0. Later, [`take`](Self::take) panics if `bytes` is 0.
    #[must_use]
    pub fn new(first: usize, most: usize, bytes: usize) -> Self {
        assert!(first > 0 && most > 0, "there are slots");
        Self {
            first: first.min(most),
            most,
            bytes,
            made: RefCell::default(),
        }
    }

    /// Takes a free slot; `None` if all slots are in use or the system has no memory. The slot
    /// still has the bytes of its last use.
    #[must_use]
    pub fn take(&self) -> Option<Slot> {
        let mut made = self.made.borrow_mut();
        if let Some(slot) = made.iter().find_map(Slots::take) {
            return Some(slot);
        }
        let count = match made.len() {
            0 => self.first,
            1 => self.most - self.first,
            _ => 0,
        };
        if count == 0 {
            return None;
        }
        let slots = Slots::new(count, self.bytes).ok()?;
        let slot = slots.take();
        made.push(slots);
        slot
    }

    /// Returns the length in bytes of the memory that is allocated so far.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let made = self.made.borrow();
        let bytes = |slots: &Slots| slots.shared.memory.bytes();
        made.iter().map(bytes).sum()
    }
}

impl fmt::Debug for Slots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slots")
            .field("free", &self.free())
            .field("slot_bytes", &self.shared.bytes)
            .finish_non_exhaustive()
    }
}

/// One exclusively owned piece of the memory of [`Slots`], for a SEND or a receive. It dereferences
/// to `[u8]`. Dropping it makes the slot free again.
pub struct Slot {
    index: usize,
    shared: Rc<Shared>,
}

impl Slot {
    /// Returns the allocation that contains the slot: the same memory for all slots of one
    /// allocation.
    #[must_use]
    pub fn memory(&self) -> &Memory {
        &self.shared.memory
    }

    fn start(&self) -> *mut u8 {
        let offset = self.index * self.shared.stride;
        assert!(
            offset + self.shared.bytes <= self.shared.memory.bytes(),
            "a slot is inside its memory"
        );
        // SAFETY: the offset is inside the one mapping, as asserted.
        unsafe { self.shared.memory.start().as_ptr().add(offset) }
    }
}

impl Deref for Slot {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the range is inside the mapping (asserted), which `shared` keeps alive, and
        // initialized (zeroed at first). Slots do not overlap, and the index of this one is not in
        // the free list, so nothing else refers to it. A device writes to it only while an
        // operation owns it.
        unsafe { std::slice::from_raw_parts(self.start(), self.shared.bytes) }
    }
}

impl DerefMut for Slot {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`; `&mut self` makes the reference exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start(), self.shared.bytes) }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.shared.free.borrow_mut().push(self.index);
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Slot({} of {} bytes)", self.index, self.shared.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stock_allocates_memory_when_it_is_needed() {
        let stock = Stock::new(2, 5, 4096);
        assert_eq!(stock.bytes(), 0);
        for _ in 0..3 {
            drop([stock.take(), stock.take()].map(|slot| slot.expect("there are two")));
        }
        let few = stock.bytes();
        assert!((2 * 4096..5 * 4096).contains(&few), "{few}");
        let all: Vec<_> = std::iter::from_fn(|| stock.take()).collect();
        assert_eq!(all.len(), 5);
        let most = stock.bytes();
        drop(all);
        let again: Vec<_> = std::iter::from_fn(|| stock.take()).collect();
        assert_eq!(again.len(), 5);
        assert!(most > few && stock.bytes() == most);
    }

    #[test]
    fn slots_are_apart_and_come_back() {
        let slots = Slots::new(3, 100).expect("memory");
        let mut taken: Vec<_> = std::iter::from_fn(|| slots.take()).collect();
        assert_eq!((taken.len(), slots.free()), (3, 0));
        for (slot, byte) in taken.iter_mut().zip(1..) {
            slot.fill(byte);
        }
        for (slot, byte) in taken.iter().zip(1..) {
            assert_eq!(slot[..], [byte; 100]);
            assert_eq!(slot.memory().start(), taken[0].memory().start());
        }
        taken.pop();
        assert_eq!(slots.free(), 1);
        let held = taken.pop().expect("two are left");
        drop((slots, taken));
        assert_eq!(held[..], [2; 100]);
    }
}
