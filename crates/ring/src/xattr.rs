//! Extended attributes of a directory that is open as a path only (O_PATH): getxattrat(2), since
//! Linux 6.13, which libraries do not offer.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// getxattrat(2) on all architectures but alpha.
const GETXATTRAT: libc::c_long = 464;

/// `struct xattr_args` of linux/xattr.h.
#[repr(C, align(8))]
struct Value {
    address: u64,
    size: u32,
    flags: u32,
}

const _: () = assert!(size_of::<Value>() == 16);

/// Reads the attribute `name` of an open directory, which may be an O_PATH descriptor. Returns the
/// length of the value in bytes.
///
/// # Errors
/// ENOSYS for a kernel before 6.13, ENOTDIR if the descriptor is not that of a directory, EACCES if
/// the thread may not search the directory, ERANGE if the value is longer than the buffer, ENODATA
/// if the directory has no such attribute.
pub fn directory_attribute(
    directory: BorrowedFd<'_>,
    name: &CStr,
    value: &mut [u8],
) -> io::Result<usize> {
    let mut arguments = Value {
        address: value.as_mut_ptr() as u64,
        size: u32::try_from(value.len()).unwrap_or(u32::MAX),
        flags: 0,
    };
    // SAFETY: the kernel reads two strings that end with NUL and the 16 bytes of the structure, and
    // writes at most `size` bytes to the exclusively borrowed buffer. The descriptor is borrowed,
    // so it stays open.
    let length = unsafe {
        libc::syscall(
            GETXATTRAT,
            directory.as_raw_fd(),
            c".".as_ptr(),
            0,
            name.as_ptr(),
            &raw mut arguments,
            size_of::<Value>(),
        )
    };
    usize::try_from(length).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn only_a_directory_is_queried() {
        let Ok(null) = File::open("/dev/null") else {
            return;
        };
        let error = directory_attribute(null.as_fd(), c"user.a", &mut [0; 8]);
        let error = error.expect_err("a device is no directory").raw_os_error();
        assert!([Some(libc::ENOTDIR), Some(libc::ENOSYS)].contains(&error));
    }
}
