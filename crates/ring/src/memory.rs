//! Owned, page-aligned anonymous memory.

use std::fmt;
use std::io;
use std::process;
use std::ptr::{self, NonNull};
use std::sync::Arc;

/// Alignment at which the kernel can back a mapping with huge pages.
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Whether a child process (after fork(2)) inherits memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Child {
    /// The child does not inherit the memory. It is for operations only, and a fork does not have
    /// to copy pinned pages.
    HasNothing,
    /// The child gets a copy of the bytes. The fork copies pages that a device has pinned at once.
    /// (Linux 5.12)
    HasBytes,
}

/// Anonymous, zeroed, page-aligned memory. Dropping it unmaps it, but only in the process that
/// mapped it.
///
/// It provides raw pointers only. A caller that makes references of them proves that they do not
/// alias.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
    process: u32,
}

// SAFETY: the mapping is plain memory that is not bound to a thread; `Mapping` only provides raw
// pointers, and the users of those prove exclusive access themselves.
unsafe impl Send for Mapping {}
// SAFETY: as above: a shared reference provides addresses, no access to the bytes.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps at least `bytes` bytes. From 2 MiB on it asks the kernel for huge pages.
    pub(crate) fn new(bytes: usize, child: Child) -> io::Result<Self> {
        let mapping = Self::small(bytes, child)?;
        if bytes >= HUGE_PAGE_BYTES {
            let start = mapping.start.as_ptr().cast();
            // SAFETY: the range is this mapping; MADV_HUGEPAGE changes no content. A refusal only
            // costs speed.
            let _ = unsafe { libc::madvise(start, bytes, libc::MADV_HUGEPAGE) };
        }
        Ok(mapping)
    }

    /// Maps memory in pages of the normal size. The first access allocates each page.
    pub(crate) fn small(bytes: usize, child: Child) -> io::Result<Self> {
        assert!(bytes > 0, "a mapping holds something");
        let (protection, flags) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
        );
        // SAFETY: a fresh anonymous mapping, at an address that the kernel chooses, overlaps
        // nothing that exists.
        let start = unsafe { libc::mmap(ptr::null_mut(), bytes, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start: NonNull<u8> = NonNull::new(start.cast()).expect("mmap does not return null");
        if child == Child::HasNothing {
            // SAFETY: the range is this mapping, which stays unchanged in this process.
            let _ = unsafe { libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_DONTFORK) };
        }
        let process = process::id();
        Ok(Self {
            start,
            bytes,
            process,
        })
    }

    /// First byte.
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Length in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Pointer to the byte at `offset`, which must be inside.
    pub(crate) fn at(&self, offset: usize) -> NonNull<u8> {
        assert!(offset < self.bytes, "an offset is inside its mapping");
        // SAFETY: the result stays inside the one mapping, as asserted.
        unsafe { self.start.add(offset) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // A child process did not inherit the mapping, and may have mapped something else at this
        // address.
        if self.process != process::id() {
            return;
        }
        // SAFETY: `new` or `small` has mapped it with this length and only this unmaps it; every
        // user of the memory keeps the mapping alive (see chunk.rs, buffer.rs).
        let result = unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
        assert_eq!(result, 0, "munmap of a whole mapping succeeds");
    }
}

/// A block of zeroed memory at a page-aligned address, which stays the same until the last clone is
/// dropped. An RDMA device can register it once. Clones refer to the same memory.
///
/// This type gives the address of the bytes but no access to them. Other types, such as
/// [`Buffer`](crate::Buffer), own and access parts of the block.
#[derive(Clone)]
pub struct Memory(Arc<Mapping>);

impl Memory {
    /// Allocates at least `bytes` zeroed bytes, in whole pages. A child process (fork) does not
    /// inherit them.
    ///
    /// # Errors
    /// The system has no memory.
    pub fn new(bytes: usize) -> io::Result<Self> {
        Self::for_child(bytes, Child::HasNothing)
    }

    /// Allocates memory that a child process inherits as `child` says.
    pub(crate) fn for_child(bytes: usize, child: Child) -> io::Result<Self> {
        Mapping::new(bytes, child).map(Arc::new).map(Self)
    }

    /// Allocates memory in pages of the normal size. The first access allocates each page.
    pub(crate) fn small(bytes: usize, child: Child) -> io::Result<Self> {
        Mapping::small(bytes, child).map(Arc::new).map(Self)
    }

    /// Returns the address of the first byte. No other memory has this address until the last clone
    /// is dropped.
    #[must_use]
    pub fn start(&self) -> NonNull<u8> {
        self.0.start()
    }

    /// Returns the length of the memory in bytes, a multiple of the page size.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.bytes()
    }

    /// Returns whether this is the last reference to the memory, so that nothing else uses it. A
    /// cache of memory blocks that are registered with a device then drops the block.
    #[must_use]
    pub fn is_last(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    pub(crate) fn mapping(&self) -> &Mapping {
        &self.0
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Memory({} bytes at {:p})", self.bytes(), self.start())
    }
}
