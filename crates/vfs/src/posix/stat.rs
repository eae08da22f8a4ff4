//! What is known of a file: the kernel's word and what Samba's attribute adds.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use proto::file::{FileKey, FileKind, Metadata};
use proto::token::Token;
use rustix::fs::{
    AtFlags, FileType, Statx, StatxFlags, StatxTimestamp, XattrFlags, fgetxattr, fsetxattr,
    getxattr, setxattr, statx,
};
use rustix::io::Errno;
use wire::FileTime;
use wire::access::FileAttributes;

use super::Posix;
use crate::dosattrib::{self, DosInfo};
use crate::{attributes, identity};

/// Bytes of a block of `st_blocks`.
const BLOCK: u64 = 512;

/// The kernel's word on a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stat(pub(super) Statx);

impl Stat {
    /// Which file.
    pub(super) fn key(&self) -> FileKey {
        let volume = u64::from(self.0.stx_dev_major) << 32 | u64::from(self.0.stx_dev_minor);
        FileKey {
            volume,
            file: self.0.stx_ino,
        }
    }

    /// Through which mount it was reached.
    pub(super) fn mount(&self) -> u64 {
        self.0.stx_mnt_id
    }
}

/// What an open descriptor stands for.
pub(super) fn stat(fd: &impl AsFd) -> Result<Stat, Errno> {
    stat_at(fd.as_fd(), "", AtFlags::EMPTY_PATH)
}

/// What a name in a directory stands for; a link is not followed.
pub(super) fn stat_name(directory: &impl AsFd, name: &str) -> Result<Stat, Errno> {
    stat_at(directory.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW)
}

fn stat_at(fd: BorrowedFd<'_>, name: &str, flags: AtFlags) -> Result<Stat, Errno> {
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME | StatxFlags::MNT_ID;
    statx(fd, name, flags | AtFlags::NO_AUTOMOUNT, wanted).map(Stat)
}

/// What kind of file it is.
pub(super) fn kind_of(stat: &Stat) -> FileKind {
    match FileType::from_raw_mode(u32::from(stat.0.stx_mode)) {
        FileType::RegularFile => FileKind::File,
        FileType::Directory => FileKind::Directory,
        FileType::Symlink => FileKind::Link,
        _ => FileKind::Special,
    }
}

/// The path that leads to what a descriptor stands for, for the calls that take no O_PATH
/// descriptor. It goes by the descriptor alone: whatever became of the name, it is this file.
pub(super) fn by_descriptor(fd: &impl AsFd) -> String {
    format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd())
}

/// A file to ask or change: its descriptor, and whether that is an O_PATH one.
#[derive(Clone, Copy)]
pub(super) struct FileRef<'a> {
    pub(super) fd: &'a OwnedFd,
    pub(super) is_path: bool,
    pub(super) token: &'a Arc<Token>,
    /// Whether the token has a right that lets it change attributes.
    pub(super) may_set_attributes: bool,
}

impl Posix {
    /// What is known of a file under a name.
    pub(super) fn metadata(&self, of: FileRef<'_>, stat: &Stat, name: &str) -> Metadata {
        let stored = self.stored(of, stat);
        self.metadata_with(stat, stored, name)
    }

    /// What is known of a file, once it is known what Samba's attribute says.
    pub(super) fn metadata_with(
        &self,
        stat: &Stat,
        stored: Option<DosInfo>,
        name: &str,
    ) -> Metadata {
        let kind = kind_of(stat);
        let DosInfo {
            attributes,
            created,
        } = stored.unwrap_or_default();
        let kept = attributes.unwrap_or_else(|| self.attributes_of_mode(stat));
        let Statx {
            stx_size,
            stx_blocks,
            stx_nlink,
            stx_uid,
            stx_gid,
            stx_mode,
            ..
        } = stat.0;
        Metadata {
            key: stat.key(),
            kind,
            attributes: attributes::shown(kept, kind, name, self.options.hide_dot_files),
            kept: attributes::kept(kept),
            size: if kind == FileKind::Directory {
                0
            } else {
                stx_size
            },
            allocation: if kind == FileKind::Directory {
                0
            } else {
                stx_blocks * BLOCK
            },
            links: stx_nlink,
            created: created.unwrap_or_else(|| birth(&stat.0)),
            accessed: file_time(&stat.0.stx_atime),
            written: file_time(&stat.0.stx_mtime),
            changed: file_time(&stat.0.stx_ctime),
            mode: u32::from(stx_mode),
            uid: stx_uid,
            gid: stx_gid,
        }
    }

    /// Without a place for attributes, the owner's write permission stands for READONLY. With
    /// one, a file that Windows never touched has none, as with Samba.
    fn attributes_of_mode(&self, stat: &Stat) -> FileAttributes {
        let is_writable = stat.0.stx_mode & 0o200 != 0;
        match self.stores_attributes || is_writable {
            true => FileAttributes::NONE,
            false => FileAttributes::READONLY,
        }
    }

    /// What Samba's attribute says. It is the server's note on a file, not its content: who may
    /// not read the file may know the attributes all the same, as they know its times.
    pub(super) fn stored(&self, of: FileRef<'_>, stat: &Stat) -> Option<DosInfo> {
        if !self.stores_attributes || !supports_attributes(stat) {
            return None;
        }
        let mut value = [0; dosattrib::MAX_LEN];
        let result = match read_dos_attribute(of, &mut value) {
            Err(Errno::ACCESS | Errno::PERM) => {
                as_server(of.token, || read_dos_attribute(of, &mut value))
            }
            result => result,
        };
        DosInfo::decode(&value[..result.ok()?])
    }

    /// Keeps attributes and birth time. The right to do so was checked when the file was opened;
    /// the kernel asks for more than Windows does: the owner of a file without write permission
    /// may not set an extended attribute. Samba keeps them as root, too.
    pub(super) fn store(&self, of: FileRef<'_>, info: DosInfo) -> Result<(), Errno> {
        let value = info.encode();
        match write_dos_attribute(of, &value) {
            Err(Errno::ACCESS | Errno::PERM) if of.may_set_attributes => {
                as_server(of.token, || write_dos_attribute(of, &value))
            }
            result => result,
        }
    }
}

/// Whether a file can carry extended attributes of the user class.
pub(super) fn supports_attributes(stat: &Stat) -> bool {
    matches!(kind_of(stat), FileKind::File | FileKind::Directory)
}

/// Does something as the server itself, and then acts for the token again.
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

fn read_dos_attribute(of: FileRef<'_>, value: &mut [u8]) -> Result<usize, Errno> {
    match of.is_path {
        true => getxattr(by_descriptor(of.fd), dosattrib::NAME, value),
        false => fgetxattr(of.fd, dosattrib::NAME, value),
    }
}

fn write_dos_attribute(of: FileRef<'_>, value: &[u8]) -> Result<(), Errno> {
    match of.is_path {
        true => setxattr(
            by_descriptor(of.fd),
            dosattrib::NAME,
            value,
            XattrFlags::empty(),
        ),
        false => fsetxattr(of.fd, dosattrib::NAME, value, XattrFlags::empty()),
    }
}

/// Birth; where the file system does not keep it, the earliest time that is known.
fn birth(statx: &Statx) -> FileTime {
    let has_birth = statx.stx_mask & StatxFlags::BTIME.bits() != 0;
    match has_birth {
        true => file_time(&statx.stx_btime),
        false => file_time(&statx.stx_mtime).min(file_time(&statx.stx_ctime)),
    }
}

fn file_time(time: &StatxTimestamp) -> FileTime {
    FileTime::from_unix(time.tv_sec, time.tv_nsec)
}
