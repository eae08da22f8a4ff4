//! Page-aligned anonymous memory, owned.

use std::io;
use std::ptr::{self, NonNull};

/// Alignment that lets the kernel back a mapping with huge pages.
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Anonymous, zeroed, page-aligned memory; unmapped on drop.
///
/// It hands out raw pointers only. Who makes references of them proves that they do not alias.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping is plain memory without ties to a thread; `Mapping` only hands out raw
// pointers, and the users of those prove exclusive access themselves.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps at least `bytes` bytes. From 2 MiB on the kernel is asked for huge pages.
    pub(crate) fn new(bytes: usize) -> io::Result<Self> {
        assert!(bytes > 0, "a mapping holds something");
        let (protection, flags) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
        );
        // SAFETY: a fresh anonymous mapping at an address that the kernel picks touches nothing
        // that exists.
        let start = unsafe { libc::mmap(ptr::null_mut(), bytes, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).expect("mmap does not return null");
        let mapping = Self { start, bytes };
        mapping.advise();
        Ok(mapping)
    }

    /// First byte.
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Length in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Pointer to the byte at `offset`, which must lie inside.
    pub(crate) fn at(&self, offset: usize) -> NonNull<u8> {
        assert!(offset < self.bytes, "an offset lies inside its mapping");
        // SAFETY: the result stays inside the one mapping, as asserted.
        unsafe { self.start.add(offset) }
    }

    fn advise(&self) {
        if self.bytes >= HUGE_PAGE_BYTES {
            let start = self.start.as_ptr().cast();
            // SAFETY: the range is our own mapping; MADV_HUGEPAGE changes no content. A refusal
            // costs speed only.
            let _ = unsafe { libc::madvise(start, self.bytes, libc::MADV_HUGEPAGE) };
        }
        let start = self.start.as_ptr().cast();
        // SAFETY: as above; a child process has no use for this memory.
        let _ = unsafe { libc::madvise(start, self.bytes, libc::MADV_DONTFORK) };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this length and unmapped only here; every user of the
        // memory keeps the mapping alive (see chunk.rs, pool.rs).
        let result = unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
        assert_eq!(result, 0, "munmap of a whole mapping succeeds");
    }
}
