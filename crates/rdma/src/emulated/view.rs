//! A range of a file as memory, for a copy that the kernel makes.
//!
//! Nobody here looks at the bytes: others may change the file at any time, and where it was cut
//! there is nothing. The kernel's copy stops there, where a processor's would end the process.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

/// A mapping of a range of a file. It ends with the value.
pub(crate) struct View {
    /// Of the page in which the range begins.
    start: *mut libc::c_void,
    /// Bytes of whole pages from there.
    mapped: usize,
    /// Bytes of the first page in front of the range.
    skip: usize,
    /// Bytes of the range.
    bytes: usize,
}

impl View {
    /// A range that lies in the file as it is now, and has bytes.
    pub(crate) fn new(file: BorrowedFd<'_>, offset: u64, bytes: usize) -> io::Result<Self> {
        let end = offset.checked_add(bytes as u64);
        if bytes == 0 || end.is_none_or(|end| end > size_of_file(file).unwrap_or(0)) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let skip = offset % page_bytes() as u64;
        let start = libc::off_t::try_from(offset - skip).map_err(io::Error::other)?;
        let skip = skip as usize;
        let mapped = (skip + bytes).next_multiple_of(page_bytes());
        let (rights, kind) = (libc::PROT_READ, libc::MAP_SHARED);
        // SAFETY: the kernel chooses an address where nothing is.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                mapped,
                rights,
                kind,
                file.as_raw_fd(),
                start,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self {
            start,
            mapped,
            skip,
            bytes,
        })
    }

    /// Whether all of it is in memory: nobody waits for a disk. Of files that this process may
    /// neither write nor own, the kernel says so always. mincore(2)
    pub(crate) fn is_in_memory(&self) -> bool {
        let mut pages = vec![0_u8; self.mapped / page_bytes()];
        // SAFETY: the range is mapped, and there is a byte for each of its pages.
        let result = unsafe { libc::mincore(self.start, self.mapped, pages.as_mut_ptr()) };
        result == 0 && pages.iter().all(|page| page & 1 != 0)
    }

    /// The range, for calls that have the kernel read it.
    pub(crate) fn range(&self) -> libc::iovec {
        libc::iovec {
            iov_base: self.start.wrapping_byte_add(self.skip),
            iov_len: self.bytes,
        }
    }
}

impl Drop for View {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, unmapped once; nothing refers to it.
        unsafe { libc::munmap(self.start, self.mapped) };
    }
}

fn size_of_file(file: BorrowedFd<'_>) -> io::Result<u64> {
    // SAFETY: the structure is plain integers, for which zeros are valid.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer describes a live local.
    if unsafe { libc::fstat(file.as_raw_fd(), &raw mut stat) } < 0 {
        return Err(io::Error::last_os_error());
    }
    u64::try_from(stat.st_size).map_err(io::Error::other)
}

fn page_bytes() -> usize {
    // SAFETY: takes no memory.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).expect("every system has pages")
}
