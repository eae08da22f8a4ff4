//! Memory of the caller that operations receive into and send from, without a copy.
//!
//! A [`Region`] owns its bytes at an address that does not change when the region moves. So an
//! operation can hold it until the kernel has finished, even if its future is dropped. [`lend`] and
//! [`lend_mut`] lend borrowed bytes for the length of a call: they return when every piece is
//! dropped, and not before.

use std::fmt;
use std::io;
use std::ops::{Deref, DerefMut, Range};
use std::ptr::NonNull;
use std::sync::{Arc, Condvar, Mutex};

use crate::buffer::Buffer;
use crate::lock::lock;
use crate::memory::{Child, Memory};

/// Memory that an operation receives into or sends from: bytes that this value owns exclusively, at
/// an address that does not change when it moves. It dereferences to `[u8]`.
pub struct Region {
    start: NonNull<u8>,
    len: usize,
    owner: Owner,
}

/// The owner of the bytes.
enum Owner {
    Vec(Vec<u8>),
    Buffer(Buffer),
    /// Memory without any other reference to its bytes.
    Pages(Memory),
    /// Only inside a [`Source`].
    Shared(Arc<[u8]>),
    /// A part of another region. No two parts overlap.
    Piece(Arc<Region>),
    Lent(Loan),
    /// Memory of another program part, such as the interpreter of another language.
    Foreign(Foreign),
}

/// An owner that this crate does not know.
struct Foreign {
    is_shared: bool,
    /// Dropped when the last operation has finished.
    _owner: Box<dyn Send + Sync>,
}

// SAFETY: a region is the only way to its bytes (or, inside a `Source`, nothing writes them), plain
// bytes are not bound to a thread, and all owners may be dropped on any thread.
unsafe impl Send for Region {}
// SAFETY: a shared reference gives read access to plain bytes only.
unsafe impl Sync for Region {}

impl Region {
    /// Allocates `len` zeroed bytes in pages that contain nothing else. An RDMA device can register
    /// them once for all operations: see [`memory`](Self::memory). Use it for memory that serves
    /// many operations.
    ///
    /// # Errors
    /// The system has no memory.
    pub fn of_pages(len: usize) -> io::Result<Self> {
        let memory = Memory::for_child(len.max(1), Child::HasBytes)?;
        Ok(Self {
            start: memory.start(),
            len,
            owner: Owner::Pages(memory),
        })
    }

    /// Makes a region of the bytes `range` of a pool buffer. Dropping the region returns the buffer
    /// to its pool.
    ///
    /// # Panics
    /// The range is not inside the buffer.
    #[must_use]
    pub fn of_buffer(mut buffer: Buffer, range: Range<usize>) -> Self {
        let part = &mut buffer[range];
        Self {
            start: NonNull::from(&mut *part).cast(),
            len: part.len(),
            owner: Owner::Buffer(buffer),
        }
    }

    /// Makes a region of the memory `bytes` of `owner`. The region drops `owner` when the last
    /// operation on the bytes has finished, on any thread.
    ///
    /// # Safety
    /// Until `owner` is dropped, the bytes stay allocated at their address, and nothing except the
    /// region reads or writes them.
    pub unsafe fn of_foreign(bytes: NonNull<[u8]>, owner: Box<dyn Send + Sync>) -> Self {
        Self::foreign(bytes, owner, false)
    }

    fn foreign(bytes: NonNull<[u8]>, owner: Box<dyn Send + Sync>, is_shared: bool) -> Self {
        Self {
            start: bytes.cast(),
            len: bytes.len(),
            owner: Owner::Foreign(Foreign {
                is_shared,
                _owner: owner,
            }),
        }
    }

    /// Returns the memory block that contains this region, if the block is long-lived, so that a
    /// device registers it once. `None` for memory that exists only for one operation.
    #[must_use]
    pub fn memory(&self) -> Option<&Memory> {
        match &self.owner {
            Owner::Buffer(buffer) => Some(buffer.memory()),
            Owner::Pages(memory) => Some(memory),
            Owner::Piece(whole) => whole.memory(),
            Owner::Vec(_) | Owner::Shared(_) | Owner::Lent(_) | Owner::Foreign(_) => None,
        }
    }

    /// Changes the length of the region to `len` bytes within its capacity. Every region can become
    /// shorter; one from [`of_pages`](Self::of_pages) can grow to its old length again. The bytes
    /// keep their values. Returns whether the length changed.
    pub fn set_len(&mut self, len: usize) -> bool {
        let capacity = match &self.owner {
            Owner::Pages(memory) => memory.bytes(),
            _ => self.len,
        };
        let fits = len <= capacity;
        if fits {
            self.len = len;
        }
        fits
    }

    /// Returns the vector from which the region was made, without a copy.
    ///
    /// # Errors
    /// The region itself, if it was not made of a vector, or is only a part of one.
    pub fn into_vec(self) -> Result<Vec<u8>, Self> {
        match self.owner {
            Owner::Vec(bytes) => Ok(bytes),
            owner => Err(Self { owner, ..self }),
        }
    }

    /// Returns the pool buffer from which the region was made.
    ///
    /// # Errors
    /// The region itself, if it was made of something else.
    pub fn into_buffer(self) -> Result<Buffer, Self> {
        match self.owner {
            Owner::Buffer(buffer) => Ok(buffer),
            owner => Err(Self { owner, ..self }),
        }
    }

    /// Cuts the region into adjacent pieces of `len` bytes; the last one may be shorter. An empty
    /// region has no pieces.
    ///
    /// # Panics
    /// When `len` is 0.
    #[must_use]
    pub fn into_pieces(self, len: usize) -> Vec<Self> {
        assert!(len > 0, "a piece has bytes");
        let (start, total) = (self.start, self.len);
        let whole = Arc::new(self);
        let piece = |offset: usize| Self {
            // SAFETY: the offset is below `total`, which is the length of the part of the
            // allocation that `whole` owns.
            start: unsafe { start.add(offset) },
            len: len.min(total - offset),
            owner: Owner::Piece(Arc::clone(&whole)),
        };
        (0..total).step_by(len).map(piece).collect()
    }

    /// Splits the region into the parts `ranges`. The ranges must be inside the region, in
    /// ascending order and without overlap. The whole region stays allocated until the last part is
    /// dropped.
    ///
    /// # Panics
    /// When a range is not inside, or starts before the end of the previous one.
    #[must_use]
    pub fn into_parts(self, ranges: &[Range<usize>]) -> Vec<Self> {
        let (start, total) = (self.start, self.len);
        let whole = Arc::new(self);
        let mut free = 0;
        let part = |range: &Range<usize>| {
            assert!(
                free <= range.start && range.start <= range.end && range.end <= total,
                "parts are inside, in ascending order"
            );
            free = range.end;
            Self {
                // SAFETY: the offset is at most `total`, which is the length of the part of the
                // allocation that `whole` owns; and no part begins before the previous one ends.
                start: unsafe { start.add(range.start) },
                len: range.len(),
                owner: Owner::Piece(Arc::clone(&whole)),
            }
        };
        ranges.iter().map(part).collect()
    }

    /// Joins the pieces into which [`into_pieces`](Self::into_pieces) cut a region, given in any
    /// order. Returns the region, or `None` if a piece is missing; the given pieces are dropped
    /// then.
    #[must_use]
    pub fn from_pieces(pieces: Vec<Self>) -> Option<Self> {
        let mut wholes = pieces.into_iter().map(|piece| match piece.owner {
            Owner::Piece(whole) => Some(whole),
            _ => None,
        });
        let first = wholes.next()??;
        for whole in wholes {
            if !Arc::ptr_eq(&first, &whole?) {
                return None;
            }
        }
        Arc::into_inner(first)
    }

    /// Pointer to the start of `range`, which must be inside. For operations that own `self`.
    pub(crate) fn pointer(&mut self, range: &Range<usize>) -> *mut u8 {
        self[range.clone()].as_mut_ptr()
    }
}

impl From<Vec<u8>> for Region {
    fn from(mut bytes: Vec<u8>) -> Self {
        Self {
            start: NonNull::from(&mut bytes[..]).cast(),
            len: bytes.len(),
            owner: Owner::Vec(bytes),
        }
    }
}

impl From<Box<[u8]>> for Region {
    fn from(bytes: Box<[u8]>) -> Self {
        Self::from(bytes.into_vec())
    }
}

impl From<Buffer> for Region {
    fn from(buffer: Buffer) -> Self {
        let whole = 0..buffer.len();
        Self::of_buffer(buffer, whole)
    }
}

impl Deref for Region {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the owner keeps the bytes initialized and at their address. Nothing else writes
        // to them: the owner is not accessed while the region lives, pieces do not overlap, and the
        // kernel writes only while an operation owns the region.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl DerefMut for Region {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`; and a region with a shared owner exists only inside a `Source`,
        // which never gives it away.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Region({} bytes)", self.len)
    }
}

/// Immutable bytes that an operation sends: a [`Region`], or bytes that several owners share.
pub struct Source(Region);

impl Source {
    /// Makes a source of the memory `bytes` of `owner`. The source drops `owner` when the last
    /// operation on the bytes has finished, on any thread.
    ///
    /// # Safety
    /// Until `owner` is dropped, the bytes stay allocated at their address, and nothing writes
    /// them.
    pub unsafe fn of_foreign(bytes: NonNull<[u8]>, owner: Box<dyn Send + Sync>) -> Self {
        Self(Region::foreign(bytes, owner, true))
    }

    /// Returns the region that the source was made of.
    ///
    /// # Errors
    /// The source itself, if it was made of shared bytes.
    pub fn into_region(self) -> Result<Region, Self> {
        if self.0.is_shared() {
            return Err(self);
        }
        Ok(self.0)
    }

    /// Returns the shared bytes from which the source was made.
    ///
    /// # Errors
    /// The source itself, if it was made of something else.
    pub fn into_shared(self) -> Result<Arc<[u8]>, Self> {
        match self.0.owner {
            Owner::Shared(bytes) => Ok(bytes),
            owner => Err(Self(Region { owner, ..self.0 })),
        }
    }

    /// Returns the memory block that contains the bytes, if the block is long-lived, so that a
    /// device registers it once. `None` for memory that exists only for one operation.
    #[must_use]
    pub fn memory(&self) -> Option<&Memory> {
        self.0.memory()
    }

    /// Cuts the source into adjacent pieces of `len` bytes; the last one may be shorter. An empty
    /// source has no pieces.
    ///
    /// # Panics
    /// When `len` is 0.
    #[must_use]
    pub fn into_pieces(self, len: usize) -> Vec<Self> {
        self.0.into_pieces(len).into_iter().map(Self).collect()
    }

    /// Joins the pieces into which [`into_pieces`](Self::into_pieces) cut a source, given in any
    /// order. Returns the source, or `None` if a piece is missing; the given pieces are dropped
    /// then.
    #[must_use]
    pub fn from_pieces(pieces: Vec<Self>) -> Option<Self> {
        let pieces = pieces.into_iter().map(|piece| piece.0).collect();
        Region::from_pieces(pieces).map(Self)
    }
}

impl Region {
    fn is_shared(&self) -> bool {
        match &self.owner {
            Owner::Vec(_) | Owner::Buffer(_) | Owner::Pages(_) => false,
            Owner::Shared(_) => true,
            Owner::Lent(loan) => loan.is_shared,
            Owner::Foreign(foreign) => foreign.is_shared,
            Owner::Piece(whole) => whole.is_shared(),
        }
    }
}

impl From<Region> for Source {
    fn from(region: Region) -> Self {
        Self(region)
    }
}

impl From<Arc<[u8]>> for Source {
    fn from(bytes: Arc<[u8]>) -> Self {
        Self(Region {
            start: NonNull::from(&bytes[..]).cast(),
            len: bytes.len(),
            owner: Owner::Shared(bytes),
        })
    }
}

impl Deref for Source {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Source({} bytes)", self.len())
    }
}

/// A loan. Dropping it notifies the lender.
struct Loan {
    returned: Arc<Returned>,
    is_shared: bool,
}

impl Drop for Loan {
    fn drop(&mut self) {
        *lock(&self.returned.is_back) = true;
        self.returned.condition.notify_all();
    }
}

#[derive(Default)]
struct Returned {
    is_back: Mutex<bool>,
    condition: Condvar,
}

/// Waits for the end of the loan when it is dropped, also when the borrower's body panics.
struct AwaitReturn(Arc<Returned>);

impl Drop for AwaitReturn {
    fn drop(&mut self) {
        let mut is_back = lock(&self.0.is_back);
        while !*is_back {
            is_back = self
                .0
                .condition
                .wait(is_back)
                .unwrap_or_else(std::sync::PoisonError::into_inner);
        }
    }
}

/// Calls `body` with a [`Region`] of the borrowed `bytes`, so that operations can write to them.
/// Returns the result of `body`, after the region and all its pieces are dropped. Leaking a piece
/// blocks this thread forever. The thread of a runtime must not call this, because its operations
/// drop the pieces.
pub fn lend_mut<R>(bytes: &mut [u8], body: impl FnOnce(Region) -> R) -> R {
    lend_pointer(NonNull::from(bytes), false, body)
}

/// Calls `body` with a [`Source`] of the borrowed `bytes`, so that operations can send them.
/// Returns the result of `body`, after the source and all its pieces are dropped. Leaking a piece
/// blocks this thread forever. The thread of a runtime must not call this, because its operations
/// drop the pieces.
pub fn lend<R>(bytes: &[u8], body: impl FnOnce(Source) -> R) -> R {
    lend_pointer(NonNull::from(bytes), true, |region| body(Source(region)))
}

/// The callers hold the borrow until this returns, which is after the region is dropped.
fn lend_pointer<R>(bytes: NonNull<[u8]>, is_shared: bool, body: impl FnOnce(Region) -> R) -> R {
    let returned = Arc::new(Returned::default());
    let _await_return = AwaitReturn(Arc::clone(&returned));
    body(Region {
        start: bytes.cast(),
        len: bytes.len(),
        owner: Owner::Lent(Loan {
            returned,
            is_shared,
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_the_bytes_of_their_ranges() {
        let region = Region::from((0..10).collect::<Vec<u8>>());
        let mut parts = region.into_parts(&[1..3, 3..3, 5..10]);
        parts[0].fill(7);
        let bytes: Vec<_> = parts.iter().map(|part| part.to_vec()).collect();
        assert_eq!(bytes, [vec![7, 7], vec![], vec![5, 6, 7, 8, 9]]);
        assert!(Region::from(vec![1]).into_parts(&[]).is_empty());
    }

    #[test]
    fn the_owner_of_foreign_memory_lives_as_long_as_its_last_piece() {
        let memory = Box::leak(vec![1_u8, 2, 3, 4].into_boxed_slice());
        let (first, second) = memory.split_at_mut(2);
        let owner = Arc::new(());
        // SAFETY: the memory is leaked, and nothing else uses it.
        let region = unsafe { Region::of_foreign(first.into(), Box::new(Arc::clone(&owner))) };
        let mut pieces = region.into_pieces(1);
        pieces[1][0] = 7;
        pieces.remove(0);
        assert_eq!(Arc::strong_count(&owner), 2);
        assert_eq!(*pieces.remove(0), [7]);
        assert_eq!(Arc::strong_count(&owner), 1);
        // SAFETY: the memory is leaked, and nothing writes it.
        let source = unsafe { Source::of_foreign(second.into(), Box::new(owner)) };
        let source = source.into_region().expect_err("nothing may write it");
        assert_eq!(*source, [3, 4]);
    }

    #[test]
    #[should_panic(expected = "in ascending order")]
    fn parts_do_not_overlap() {
        drop(Region::from(vec![0; 10]).into_parts(&[0..5, 4..6]));
    }

    #[test]
    #[should_panic(expected = "in ascending order")]
    fn parts_are_inside() {
        drop(Region::from(vec![0; 10]).into_parts(&[1..2, 5..11]));
    }

    #[test]
    fn pieces_join_to_the_whole_region() {
        let region = Region::from((0..10).collect::<Vec<u8>>());
        let mut pieces = region.into_pieces(4);
        let lengths: Vec<_> = pieces.iter().map(|piece| piece.len()).collect();
        assert_eq!(lengths, [4, 4, 2]);
        pieces[1].fill(7);
        pieces.reverse();
        let whole = Region::from_pieces(pieces).expect("all pieces");
        assert_eq!(
            whole.into_vec().expect("a vector"),
            [0, 1, 2, 3, 7, 7, 7, 7, 8, 9]
        );
    }

    #[test]
    fn pages_keep_their_address_and_their_bytes() {
        let mut region = Region::of_pages(5000).expect("memory");
        assert_eq!(region[..], [0; 5000]);
        region.fill(7);
        let start = region.memory().expect("pages").start();
        assert!(region.set_len(3000) && !region.set_len(1 << 20));
        assert_eq!(region[..], [7; 3000]);
        let mut pieces = region.into_pieces(1000);
        let is_of = |piece: &Region| piece.memory().is_some_and(|it| it.start() == start);
        assert!(pieces.iter().all(is_of));
        pieces[2].fill(8);
        let mut region = Region::from_pieces(pieces).expect("all pieces");
        assert!(region.set_len(5000));
        assert_eq!(region[1999..3001], [&[7][..], &[8; 1000], &[7]].concat());
        let mut vector = Region::from(vec![1; 10]);
        assert!(vector.memory().is_none() && vector.set_len(5) && !vector.set_len(6));
        assert_eq!(vector[..], [1; 5]);
    }

    #[test]
    fn pieces_do_not_join_while_one_is_missing() {
        let mut pieces = Region::from(vec![0; 10]).into_pieces(4);
        let last = pieces.pop().expect("three pieces");
        assert!(Region::from_pieces(pieces).is_none());
        assert_eq!(last.len(), 2);
        assert!(Region::from_pieces(vec![last, Region::from(vec![1])]).is_none());
        assert!(Region::from_pieces(Vec::new()).is_none());
        assert!(Region::from(Vec::new()).into_pieces(4).is_empty());
    }

    #[test]
    fn shared_bytes_are_never_writable() {
        let bytes: Arc<[u8]> = Arc::from([1, 2, 3]);
        let mut pieces = Source::from(Arc::clone(&bytes)).into_pieces(2);
        let last = pieces.pop().expect("two pieces");
        let last = last.into_region().expect_err("shared");
        pieces.push(last);
        let whole = Source::from_pieces(pieces).expect("all pieces");
        assert_eq!(
            &whole.into_shared().expect("the shared bytes")[..],
            &bytes[..]
        );
        lend(&bytes, |source| {
            source.into_region().expect_err("only read");
        });
    }

    #[test]
    fn a_loan_ends_before_the_call_returns() {
        let mut bytes = [0; 100];
        let thread = lend_mut(&mut bytes, |region| {
            let mut pieces = region.into_pieces(30);
            let mut last = pieces.pop().expect("four pieces");
            let thread = std::thread::spawn(move || {
                for piece in &mut pieces {
                    piece.fill(1);
                }
            });
            last.fill(2);
            thread
        });
        assert_eq!(bytes[..90], [1; 90]);
        assert_eq!(bytes[90..], [2; 10]);
        thread.join().expect("no panic");
    }

    #[test]
    fn a_panic_waits_for_the_end_of_the_loan() {
        let mut bytes = [0; 10];
        let (sender, receiver) = std::sync::mpsc::channel::<Region>();
        let thread = std::thread::spawn(move || {
            receiver.recv().expect("sent before the panic").fill(3);
        });
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            lend_mut(&mut bytes, |region| {
                sender.send(region).expect("the thread waits");
                panic!("on purpose");
            });
        }));
        assert!(result.is_err());
        assert_eq!(bytes, [3; 10]);
        thread.join().expect("no panic");
    }
}
