//! Ranges of files that share their extents on the disk (reflink).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// `struct file_clone_range` of linux/fs.h.
#[repr(C)]
struct CloneRange {
    source: i64,
    source_offset: u64,
    source_length: u64,
    target_offset: u64,
}

const _: () = assert!(size_of::<CloneRange>() == 32);

/// FICLONERANGE of linux/fs.h: `_IOW(0x94, 13, struct file_clone_range)`.
const FICLONERANGE: libc::Ioctl = 0x4020_940D;

/// Makes `length` bytes at `target_offset` of the file `target` share the extents of the same
/// number of bytes at `source_offset` of the file `source`. A length of 0 means up to the end of
/// the source. Offsets and length are multiples of the block size of the file system; a range that
/// ends at the end of the source needs no aligned length. Blocks until dirty pages of the source
/// are written.
///
/// # Errors
/// EOPNOTSUPP if the file system has no shared extents, EXDEV for files of two file systems, EINVAL
/// for ranges that are not aligned or overlap in one file, EBADF if `source` is not open for
/// reading or `target` not for writing.
pub fn clone_range(
    target: BorrowedFd<'_>,
    source: BorrowedFd<'_>,
    source_offset: u64,
    target_offset: u64,
    length: u64,
) -> io::Result<()> {
    let range = CloneRange {
        source: i64::from(source.as_raw_fd()),
        source_offset,
        source_length: length,
        target_offset,
    };
    // SAFETY: the kernel reads the 32 bytes of the structure during the call. Both descriptors are
    // borrowed, so they stay open.
    let result = unsafe { libc::ioctl(target.as_raw_fd(), FICLONERANGE, &raw const range) };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn a_file_system_without_shared_extents_says_so() {
        let Ok(null) = File::open("/dev/null") else {
            return;
        };
        let error = clone_range(null.as_fd(), null.as_fd(), 0, 0, 0);
        assert!(error.is_err(), "a device has no extents");
    }
}
