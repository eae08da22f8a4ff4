//! Page-aligned anonymous memory, owned.

use std::fmt;
use std::io;
use std::process;
use std::ptr::{self, NonNull};
use std::sync::Arc;

/// Alignment that lets the kernel back a mapping with huge pages.
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// What a child process has of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Child {
    /// Nothing: it is for operations only, and a fork need not copy what is pinned.
    HasNothing,
    /// Its own copy of the bytes. Pages that a device has pinned are copied at once. (Linux 5.12)
    HasBytes,
}

/// Anonymous, zeroed, page-aligned memory; unmapped on drop, by the process that made it.
///
/// It hands out raw pointers only. Who makes references of them proves that they do not alias.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
    process: u32,
}

// SAFETY: the mapping is plain memory without ties to a thread; `Mapping` only hands out raw
// pointers, and the users of those prove exclusive access themselves.
unsafe impl Send for Mapping {}
// SAFETY: as above: a shared reference gives addresses away, no access to the bytes.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps at least `bytes` bytes. From 2 MiB on the kernel is asked for huge pages.
    pub(crate) fn new(bytes: usize, child: Child) -> io::Result<Self> {
        let mapping = Self::small(bytes, child)?;
        if bytes >= HUGE_PAGE_BYTES {
            let start = mapping.start.as_ptr().cast();
            // SAFETY: the range is our own mapping; MADV_HUGEPAGE changes no content. A refusal
            // costs speed only.
            let _ = unsafe { libc::madvise(start, bytes, libc::MADV_HUGEPAGE) };
        }
        Ok(mapping)
    }

    /// The same in pages of the usual size, each of which is made when it is touched.
    pub(crate) fn small(bytes: usize, child: Child) -> io::Result<Self> {
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
        let start: NonNull<u8> = NonNull::new(start.cast()).expect("mmap does not return null");
        if child == Child::HasNothing {
            // SAFETY: the range is our own mapping, and stays as it is in this process.
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

    /// Pointer to the byte at `offset`, which must lie inside.
    pub(crate) fn at(&self, offset: usize) -> NonNull<u8> {
        assert!(offset < self.bytes, "an offset lies inside its mapping");
        // SAFETY: the result stays inside the one mapping, as asserted.
        unsafe { self.start.add(offset) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // In a child there may be something else by now where it was not copied to.
        if self.process != process::id() {
            return;
        }
        // SAFETY: mapped by `new` with this length and unmapped only here; every user of the
        // memory keeps the mapping alive (see chunk.rs, pool.rs).
        let result = unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
        assert_eq!(result, 0, "munmap of a whole mapping succeeds");
    }
}

/// Zeroed memory at a page-aligned address that does not change, there as long as somebody holds
/// this: what a device can be told of once. Clones are the same memory.
///
/// It tells where the bytes are and gives no access to them: those of a slab of the pool are its
/// [`Buffer`](crate::Buffer)s'.
#[derive(Clone)]
pub struct Memory(Arc<Mapping>);

impl Memory {
    /// Takes at least `bytes` bytes from the system. A child process does not have them.
    ///
    /// # Errors
    /// The system has none.
    pub fn new(bytes: usize) -> io::Result<Self> {
        Self::for_child(bytes, Child::HasNothing)
    }

    /// The same, with what a child process has of it.
    pub(crate) fn for_child(bytes: usize, child: Child) -> io::Result<Self> {
        Mapping::new(bytes, child).map(Arc::new).map(Self)
    }

    /// The same in pages of the usual size, each of which is made when it is touched.
    pub(crate) fn small(bytes: usize, child: Child) -> io::Result<Self> {
        Mapping::small(bytes, child).map(Arc::new).map(Self)
    }

    /// First byte. No other memory has this address while somebody holds this one.
    #[must_use]
    pub fn start(&self) -> NonNull<u8> {
        self.0.start()
    }

    /// Length in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.bytes()
    }

    /// Whether nobody else holds it any more: its pool has given it up, and no buffer is in it.
    /// Who keeps it only because a device knows it lets go of it now.
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
