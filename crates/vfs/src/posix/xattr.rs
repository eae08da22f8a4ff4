//! Extended attributes of files, by system calls. An O_PATH descriptor does not support them, so
//! the calls for it use a path that leads to the same file.

use std::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{
    XattrFlags, fgetxattr, fgetxattr_query, flistxattr, fremovexattr, fsetxattr, getxattr,
    getxattr_query, listxattr, removexattr, setxattr,
};
use rustix::io::Errno;
use rustix::path::Arg;

use super::file_ref::FileRef;
use super::stat::{as_server, by_descriptor};

/// Length of the buffer for most lists of names in bytes. Longer ones are read again.
const USUAL_LIST_LEN: usize = 1024;
/// Maximum length of the list of all names in bytes. XATTR_LIST_MAX
const LIST_MAX: usize = 64 << 10;

/// Reads an attribute. Fails with RANGE if the value is longer than the buffer.
pub(super) fn get(of: FileRef<'_>, name: impl Arg, value: &mut [u8]) -> Result<usize, Errno> {
    match of.is_path {
        true => name.into_with_c_str(|name| match directory_attribute(of.fd, name, value) {
            Some(result) => result,
            None => getxattr(by_descriptor(of.fd), name, value),
        }),
        false => fgetxattr(of.fd, name, value),
    }
}

/// Reads an attribute of a directory by an O_PATH descriptor; `None` if that needs the path of the
/// descriptor in /proc, which takes three times as long.
fn directory_attribute(
    fd: &OwnedFd,
    name: &CStr,
    value: &mut [u8],
) -> Option<Result<usize, Errno>> {
    /// Whether the kernel does not have the system call.
    static IS_MISSING: AtomicBool = AtomicBool::new(false);
    if IS_MISSING.load(Ordering::Relaxed) {
        return None;
    }
    let result = ring::directory_attribute(fd.as_fd(), name, value);
    let result = result.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO));
    match result {
        Err(Errno::NOSYS) => {
            IS_MISSING.store(true, Ordering::Relaxed);
            None
        }
        // The path in /proc needs no permission to search the directory.
        Err(Errno::NOTDIR | Errno::ACCESS) => None,
        result => Some(result),
    }
}

/// Returns the length of the value of an attribute in bytes.
pub(super) fn length(of: FileRef<'_>, name: impl Arg) -> Result<usize, Errno> {
    match of.is_path {
        true => getxattr_query(by_descriptor(of.fd), name),
        false => fgetxattr_query(of.fd, name),
    }
}

/// Sets an attribute. `flags` may require that it exists, or that it does not.
pub(super) fn set(
    of: FileRef<'_>,
    name: impl Arg,
    value: &[u8],
    flags: XattrFlags,
) -> Result<(), Errno> {
    match of.is_path {
        true => setxattr(by_descriptor(of.fd), name, value, flags),
        false => fsetxattr(of.fd, name, value, flags),
    }
}

/// Removes an attribute. Fails with NODATA if it does not exist.
pub(super) fn remove(of: FileRef<'_>, name: impl Arg) -> Result<(), Errno> {
    match of.is_path {
        true => removexattr(by_descriptor(of.fd), name),
        false => fremovexattr(of.fd, name),
    }
}

/// Returns the names of all attributes, each with a zero byte after it.
pub(super) fn list(of: FileRef<'_>) -> Result<Vec<u8>, Errno> {
    let mut names = vec![0; USUAL_LIST_LEN];
    loop {
        let length = match of.is_path {
            true => listxattr(by_descriptor(of.fd), &mut names[..]),
            false => flistxattr(of.fd, &mut names[..]),
        };
        match length {
            Ok(length) => {
                names.truncate(length);
                return Ok(names);
            }
            Err(Errno::RANGE) if names.len() < LIST_MAX => names.resize(LIST_MAX, 0),
            Err(errno) => return Err(errno),
        }
    }
}

/// Fails with NOSPC if the kernel cannot list the names of all attributes with a further one. Some
/// file systems, such as XFS and tmpfs, store more, and then every list of the file fails.
pub(super) fn check_names(of: FileRef<'_>, name: &[u8]) -> Result<(), Errno> {
    let length = list(of)?.len() + name.len() + 1;
    match length <= LIST_MAX {
        true => Ok(()),
        false => Err(Errno::NOSPC),
    }
}

/// Runs a change with the credentials of the user, and again as the server if the kernel refuses it
/// and the open has a right to write. The right was checked when the file was opened; the kernel
/// requires more than Windows does, such as an owner with write permission.
pub(super) fn as_permitted<T>(
    of: FileRef<'_>,
    mut run: impl FnMut() -> Result<T, Errno>,
) -> Result<T, Errno> {
    match run() {
        Err(Errno::ACCESS | Errno::PERM) if of.may_set_attributes => as_server(of.token, run),
        result => result,
    }
}
