//! Memory of others that operations work on: received into, sent from, never copied.
//!
//! A [`Region`] owns its bytes, whatever they are made of, at an address that does not change
//! when the region moves. So an operation can hold it until the kernel has let go, however its
//! future ends. What is only borrowed can be lent for the length of a call: [`lend`] and
//! [`lend_mut`] return when every piece is dropped, and not before.

use std::fmt;
use std::io;
use std::ops::{Deref, DerefMut, Range};
use std::ptr::NonNull;
use std::sync::{Arc, Condvar, Mutex};

use crate::buffer::Buffer;
use crate::lock::lock;
use crate::memory::{Child, Memory};

/// Bytes that nobody else sees or changes.
pub struct Region {
    start: NonNull<u8>,
    len: usize,
    owner: Owner,
}

/// What keeps the bytes.
enum Owner {
    Vec(Vec<u8>),
    Buffer(Buffer),
    /// Nobody else makes references to its bytes.
    Pages(Memory),
    /// Only within a [`Source`].
    Shared(Arc<[u8]>),
    /// Part of another region; no two parts overlap.
    Piece(Arc<Region>),
    Lent(Loan),
}

// SAFETY: a region is the only way to its bytes (or they are never written, within a `Source`),
// plain bytes have no ties to a thread, and all owners may be dropped on any thread.
unsafe impl Send for Region {}
// SAFETY: a shared reference gives read access to plain bytes only.
unsafe impl Sync for Region {}

impl Region {
    /// `len` bytes of zeros in pages of their own, which a device can be told of once for all
    /// operations: see [`memory`](Self::memory). For what is used again and again.
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

    /// The part `range` of a buffer, which must lie inside; the buffer goes back to its pool with
    /// it.
    #[must_use]
    pub fn of_buffer(mut buffer: Buffer, range: Range<usize>) -> Self {
        let part = &mut buffer[range];
        Self {
            start: NonNull::from(&mut *part).cast(),
            len: part.len(),
            owner: Owner::Buffer(buffer),
        }
    }

    /// The memory that this is part of, where that is there for longer than an operation: a slab of
    /// the pool, or pages of its own.
    #[must_use]
    pub fn memory(&self) -> Option<&Memory> {
        match &self.owner {
            Owner::Buffer(buffer) => Some(buffer.memory()),
            Owner::Pages(memory) => Some(memory),
            Owner::Piece(whole) => whole.memory(),
            Owner::Vec(_) | Owner::Shared(_) | Owner::Lent(_) => None,
        }
    }

    /// Gives it another length, if it has room for that: everything can be shorter, and pages of
    /// its own can be as long again. Bytes that were there before are there again.
    pub fn set_len(&mut self, len: usize) -> bool {
        let room = match &self.owner {
            Owner::Pages(memory) => memory.bytes(),
            _ => self.len,
        };
        let has_room = len <= room;
        if has_room {
            self.len = len;
        }
        has_room
    }

    /// The vector again that this was made of.
    ///
    /// # Errors
    /// The region, where it was made of something else.
    pub fn into_vec(self) -> Result<Vec<u8>, Self> {
        match self.owner {
            Owner::Vec(bytes) => Ok(bytes),
            owner => Err(Self { owner, ..self }),
        }
    }

    /// The buffer again that this was made of.
    ///
    /// # Errors
    /// The region, where it was made of something else.
    pub fn into_buffer(self) -> Result<Buffer, Self> {
        match self.owner {
            Owner::Buffer(buffer) => Ok(buffer),
            owner => Err(Self { owner, ..self }),
        }
    }

    /// Cuts it into pieces of `len` bytes; the last one may be shorter. None where it is empty.
    ///
    /// # Panics
    /// When `len` is 0.
    #[must_use]
    pub fn into_pieces(self, len: usize) -> Vec<Self> {
        assert!(len > 0, "a piece has bytes");
        let (start, total) = (self.start, self.len);
        let whole = Arc::new(self);
        let piece = |offset: usize| Self {
            // SAFETY: the offset is below `total`, which is the length of the allocation's part
            // that `whole` owns.
            start: unsafe { start.add(offset) },
            len: len.min(total - offset),
            owner: Owner::Piece(Arc::clone(&whole)),
        };
        (0..total).step_by(len).map(piece).collect()
    }

    /// The parts `ranges`, which must lie inside, one behind the other. What is between them is
    /// kept as long as any of them.
    ///
    /// # Panics
    /// When a range does not lie inside, or begins before the one ahead of it ends.
    #[must_use]
    pub fn into_parts(self, ranges: &[Range<usize>]) -> Vec<Self> {
        let (start, total) = (self.start, self.len);
        let whole = Arc::new(self);
        let mut free = 0;
        let part = |range: &Range<usize>| {
            assert!(
                free <= range.start && range.start <= range.end && range.end <= total,
                "parts lie inside, one behind the other"
            );
            free = range.end;
            Self {
                // SAFETY: the offset is `total` at most, which is the length of the allocation's
                // part that `whole` owns; and no part begins before the last one ends.
                start: unsafe { start.add(range.start) },
                len: range.len(),
                owner: Owner::Piece(Arc::clone(&whole)),
            }
        };
        ranges.iter().map(part).collect()
    }

    /// Makes one again of all pieces that [`into_pieces`](Self::into_pieces) made, in any order.
    /// `None` while another piece is elsewhere; those given are dropped then.
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

    /// Pointer to the start of `range`, which must lie inside. For operations that own `self`.
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
        // SAFETY: the owner keeps the bytes, initialised, where they are; nobody else writes to
        // them: the owner is never touched while the region lives, pieces do not overlap, and the
        // kernel writes only while an operation owns the region.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl DerefMut for Region {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`; and shared owners are only within a `Source`, which never gives
        // a region of them away.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Region({} bytes)", self.len)
    }
}

/// Bytes that nobody changes: to be sent.
pub struct Source(Region);

impl Source {
    /// The region again, unless others share it.
    ///
    /// # Errors
    /// The source, where it was made of shared bytes.
    pub fn into_region(self) -> Result<Region, Self> {
        if self.0.is_shared() {
            return Err(self);
        }
        Ok(self.0)
    }

    /// The shared bytes again that this was made of.
    ///
    /// # Errors
    /// The source, where it was made of something else.
    pub fn into_shared(self) -> Result<Arc<[u8]>, Self> {
        match self.0.owner {
            Owner::Shared(bytes) => Ok(bytes),
            owner => Err(Self(Region { owner, ..self.0 })),
        }
    }

    /// As [`Region::memory`].
    #[must_use]
    pub fn memory(&self) -> Option<&Memory> {
        self.0.memory()
    }

    /// As [`Region::into_pieces`].
    #[must_use]
    pub fn into_pieces(self, len: usize) -> Vec<Self> {
        self.0.into_pieces(len).into_iter().map(Self).collect()
    }

    /// As [`Region::from_pieces`].
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

/// Something lent: dropped, it tells who waits for it.
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

/// Waits for the loan when it is dropped: also where the borrower's body panics.
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

/// Lends bytes to be written for as long as `body` runs, and then until the region and all its
/// pieces are dropped: a piece that is leaked blocks this thread for ever. Not for the thread of
/// a runtime, whose operations drop the pieces.
pub fn lend_mut<R>(bytes: &mut [u8], body: impl FnOnce(Region) -> R) -> R {
    lend_pointer(NonNull::from(bytes), false, body)
}

/// The same for bytes that are only read.
pub fn lend<R>(bytes: &[u8], body: impl FnOnce(Source) -> R) -> R {
    lend_pointer(NonNull::from(bytes), true, |region| body(Source(region)))
}

/// The callers hold the borrow until this returns, which is when the region is gone.
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
    fn parts_are_where_they_were_in_the_whole() {
        let region = Region::from((0..10).collect::<Vec<u8>>());
        let mut parts = region.into_parts(&[1..3, 3..3, 5..10]);
        parts[0].fill(7);
        let bytes: Vec<_> = parts.iter().map(|part| part.to_vec()).collect();
        assert_eq!(bytes, [vec![7, 7], vec![], vec![5, 6, 7, 8, 9]]);
        assert!(Region::from(vec![1]).into_parts(&[]).is_empty());
    }

    #[test]
    #[should_panic(expected = "one behind the other")]
    fn parts_do_not_overlap() {
        drop(Region::from(vec![0; 10]).into_parts(&[0..5, 4..6]));
    }

    #[test]
    #[should_panic(expected = "one behind the other")]
    fn parts_lie_inside() {
        drop(Region::from(vec![0; 10]).into_parts(&[1..2, 5..11]));
    }

    #[test]
    fn pieces_become_what_they_were() {
        let region = Region::from((0..10).collect::<Vec<u8>>());
        let mut pieces = region.into_pieces(4);
        let lengths: Vec<_> = pieces.iter().map(|piece| piece.len()).collect();
        assert_eq!(lengths, [4, 4, 2]);
        pieces[1].fill(7);
        pieces.reverse();
        let whole = Region::from_pieces(pieces).expect("all are there");
        assert_eq!(
            whole.into_vec().expect("a vector"),
            [0, 1, 2, 3, 7, 7, 7, 7, 8, 9]
        );
    }

    #[test]
    fn pages_keep_their_place_and_their_bytes() {
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
        let mut region = Region::from_pieces(pieces).expect("all are there");
        assert!(region.set_len(5000));
        assert_eq!(region[1999..3001], [&[7][..], &[8; 1000], &[7]].concat());
        let mut vector = Region::from(vec![1; 10]);
        assert!(vector.memory().is_none() && vector.set_len(5) && !vector.set_len(6));
        assert_eq!(vector[..], [1; 5]);
    }

    #[test]
    fn a_missing_piece_is_missed() {
        let mut pieces = Region::from(vec![0; 10]).into_pieces(4);
        let kept = pieces.pop().expect("three pieces");
        assert!(Region::from_pieces(pieces).is_none());
        assert_eq!(kept.len(), 2);
        assert!(Region::from_pieces(vec![kept, Region::from(vec![1])]).is_none());
        assert!(Region::from_pieces(Vec::new()).is_none());
        assert!(Region::from(Vec::new()).into_pieces(4).is_empty());
    }

    #[test]
    fn shared_bytes_are_never_given_to_write() {
        let bytes: Arc<[u8]> = Arc::from([1, 2, 3]);
        let mut pieces = Source::from(Arc::clone(&bytes)).into_pieces(2);
        let last = pieces.pop().expect("two pieces");
        let last = last.into_region().expect_err("shared");
        pieces.push(last);
        let whole = Source::from_pieces(pieces).expect("all are there");
        assert_eq!(&whole.into_shared().expect("as it was")[..], &bytes[..]);
        lend(&bytes, |source| {
            source.into_region().expect_err("only read");
        });
    }

    #[test]
    fn what_is_lent_comes_back_before_the_call_returns() {
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
    fn a_panic_waits_for_what_is_lent() {
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
