//! The kernel's metadata of a file (statx), and references to files.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::Arc;

use proto::file::{FileKey, FileKind, StreamId};
use proto::token::Token;
use rustix::fs::{AtFlags, FileType, Statx, StatxFlags, statx};
use rustix::io::Errno;

use crate::identity;

/// Asks statx(2) for a mount identifier that the kernel does not use again (Linux 6.8); older
/// kernels ignore the flag. STATX_MNT_ID_UNIQUE
const MNT_ID_UNIQUE: StatxFlags = StatxFlags::from_bits_retain(0x4000);

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
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME | StatxFlags::MNT_ID | MNT_ID_UNIQUE;
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

/// Whether a file can have extended attributes of the user class.
pub(super) fn supports_attributes(stat: &Stat) -> bool {
    matches!(kind_of(stat), FileKind::File | FileKind::Directory)
}

/// Runs a function with the credentials of the user, and again as the server if the kernel refuses
/// it: for metadata that every user receives, and where the caller has checked the right.
pub(super) fn or_as_server<T>(
    token: &Arc<Token>,
    mut run: impl FnMut() -> Result<T, Errno>,
) -> Result<T, Errno> {
    match run() {
        Err(Errno::ACCESS | Errno::PERM) => as_server(token, run),
        result => result,
    }
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

/// Runs a function with the credentials of the server. Without other users, these are the only
/// ones.
pub(super) fn as_own<T>(
    token: &Arc<Token>,
    run: impl FnOnce() -> Result<T, Errno>,
) -> Result<T, Errno> {
    match identity::switches() {
        true => as_server(token, run),
        false => run(),
    }
}
