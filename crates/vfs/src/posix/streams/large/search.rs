//! The search for files of a share with pointers to given blobs.
//!
//! A local copy of a file has the same pointers as its original, and nothing else knows of it. So
//! the search reads the names of the attributes of every file below the root, on every file system
//! that is mounted there.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{
    FileType, Mode, OFlags, RawDir, ResolveFlags, fstatfs, llistxattr, openat, openat2,
};
use rustix::io::Errno;

use super::blob::DIRECTORY;
use super::pointer;
use crate::posix::directory::{BENEATH, Directory};
use crate::posix::stat::by_descriptor;

/// Length of the buffer for entries of a directory in bytes.
const BUFFER: usize = 32 << 10;
/// Maximum number of directories that wait for a visit. With more, the search fails.
const DIRECTORIES_MAX: usize = 1 << 20;
/// Maximum length of the list of the names of all attributes of a file in bytes. XATTR_LIST_MAX
const NAMES_MAX: usize = 64 << 10;

/// `f_type` of statfs(2) of proc and sysfs, which keep no copies of files. Parts of proc cannot be
/// read.
const WITHOUT_COPIES: [u32; 2] = [0x0000_9FA0, 0x6265_6572];

/// Calls `found` with an O_PATH descriptor of each file of the share that has a pointer. The thread
/// has the credentials of the server. Fails if a directory or file cannot be read: it may have a
/// pointer. A file that moves during the search may be missed.
pub(super) fn files_with_pointers(
    root: &Directory,
    mut found: impl FnMut(&OwnedFd) -> Result<(), Errno>,
) -> io::Result<()> {
    let mut left = vec![PathBuf::new()];
    let mut names = vec![0; NAMES_MAX];
    while let Some(path) = left.pop() {
        let visited = visit(root, &path, &mut names, &mut left, &mut found);
        match visited {
            // Another process has removed the directory.
            Ok(()) | Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
            Err(errno) => {
                let reason = io::Error::from(errno);
                let path = path.display();
                return Err(io::Error::other(format!(
                    "cannot search {path:?}: {reason}"
                )));
            }
        }
    }
    Ok(())
}

/// Searches a directory and its files. Adds its subdirectories to `left`.
fn visit(
    root: &Directory,
    path: &Path,
    names: &mut [u8],
    left: &mut Vec<PathBuf>,
    found: &mut impl FnMut(&OwnedFd) -> Result<(), Errno>,
) -> Result<(), Errno> {
    let is_root = path.as_os_str().is_empty();
    let at = if is_root { Path::new(".") } else { path };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let rules = BENEATH | ResolveFlags::NO_SYMLINKS;
    let directory = openat2(&root.fd, at, flags, Mode::empty(), rules)?;
    if WITHOUT_COPIES.contains(&(fstatfs(&directory)?.f_type as u32)) {
        return Ok(());
    }
    if is_root && has_pointer(&directory, ".", names)? {
        found(&directory)?;
    }
    let mut buffer = Box::new_uninit_slice(BUFFER);
    let mut entries = RawDir::new(&directory, &mut buffer);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if matches!(name, b"." | b"..") || is_root && name == DIRECTORY.as_bytes() {
            continue;
        }
        let name = OsStr::from_bytes(name);
        if left.len() >= DIRECTORIES_MAX {
            return Err(Errno::NOMEM);
        }
        // The open of another kind of file fails.
        if matches!(entry.file_type(), FileType::Directory | FileType::Unknown) {
            left.push(path.join(name));
        }
        if has_pointer(&directory, name, names)? {
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            match openat(&directory, name, flags, Mode::empty()) {
                Ok(fd) => found(&fd)?,
                Err(Errno::NOENT) => {}
                Err(errno) => return Err(errno),
            }
        }
    }
    Ok(())
}

/// Whether a file of a directory has a pointer.
fn has_pointer(
    directory: &OwnedFd,
    name: impl AsRef<Path>,
    names: &mut [u8],
) -> Result<bool, Errno> {
    let path = Path::new(by_descriptor(directory).as_str()).join(name);
    match llistxattr(&path, &mut *names) {
        Ok(length) => Ok(pointer::is_in(&names[..length])),
        Err(Errno::NOENT | Errno::OPNOTSUPP | Errno::NOSYS) => Ok(false),
        Err(errno) => Err(errno),
    }
}
