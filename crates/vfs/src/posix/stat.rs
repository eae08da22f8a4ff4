//! The kernel's metadata of a file (statx), and references to files.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use proto::file::{FileKey, FileKind, StreamId};
use proto::token::Token;
use rustix::fs::{AtFlags, FileType, Statx, StatxFlags, statx};
use rustix::io::Errno;

use crate::identity;

/// The result of statx.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stat(pub(super) Statx);

impl Stat {
    /// The key of the file: device and inode.
    pub(super) fn key(&self) -> FileKey {
        let volume = u64::from(self.0.stx_dev_major) << 32 | u64::from(self.0.stx_dev_minor);
        FileKey {
            volume,
            file: self.0.stx_ino,
            stream: StreamId::DATA,
        }
    }

    /// The identifier of the mount through which the file was reached.
    pub(super) fn mount(&self) -> u64 {
        self.0.stx_mnt_id
    }
}

/// Queries the file of a descriptor.
pub(super) fn stat(fd: &impl AsFd) -> Result<Stat, Errno> {
    stat_at(fd.as_fd(), b"", AtFlags::EMPTY_PATH)
}

/// Queries a name on the disk in a directory. A link is not followed.
pub(super) fn stat_name(directory: &impl AsFd, name: &[u8]) -> Result<Stat, Errno> {
    stat_at(directory.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW)
}

fn stat_at(fd: BorrowedFd<'_>, name: &[u8], flags: AtFlags) -> Result<Stat, Errno> {
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME | StatxFlags::MNT_ID;
    statx(fd, name, flags | AtFlags::NO_AUTOMOUNT, wanted).map(Stat)
}

/// The kind of the file.
pub(super) fn kind_of(stat: &Stat) -> FileKind {
    match FileType::from_raw_mode(u32::from(stat.0.stx_mode)) {
        FileType::RegularFile => FileKind::File,
        FileType::Directory => FileKind::Directory,
        FileType::Symlink => FileKind::Link,
        _ => FileKind::Special,
    }
}

/// A path that leads to the file of a descriptor, for system calls that do not accept an O_PATH
/// descriptor. It depends on the descriptor alone, so it stays valid after a rename.
pub(super) fn by_descriptor(fd: &impl AsFd) -> String {
    format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd())
}

/// A file to query or change: its descriptor, and whether that is an O_PATH descriptor.
#[derive(Clone, Copy)]
pub(super) struct FileRef<'a> {
    pub(super) fd: &'a OwnedFd,
    pub(super) is_path: bool,
    pub(super) token: &'a Arc<Token>,
    /// Whether the open has a right that permits changes of attributes.
    pub(super) may_set_attributes: bool,
}

/// Whether a file can have extended attributes of the user class.
pub(super) fn supports_attributes(stat: &Stat) -> bool {
    matches!(kind_of(stat), FileKind::File | FileKind::Directory)
}

/// Runs a function with the credentials of the server, then switches back to those of the token.
pub(super) fn as_server<T>(
    token: &Arc<Token>,
    run: impl FnOnce() -> Result<T, Errno>,
) -> Result<T, Errno> {
    if !identity::switches() {
        return Err(Errno::ACCESS);
    }
    identity::own().map_err(|_| Errno::PERM)?;
    let result = run();
    identity::assume(token).map_err(|_| Errno::PERM)?;
    result
}
