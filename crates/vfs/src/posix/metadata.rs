//! The metadata of a file: the kernel's statx data and the DOS attributes that Samba stores.

use proto::file::{FileKind, Metadata};
use rustix::fs::{Statx, StatxFlags, StatxTimestamp, XattrFlags};
use rustix::io::Errno;
use wire::FileTime;
use wire::access::FileAttributes;
use wire::posix::PosixMode;

use super::Posix;
use super::compression;
use super::file_ref::FileRef;
use super::reparse::stored as reparse;
use super::stat::{Stat, kind_of, or_as_server, supports_attributes};
use super::volume::Volume;
use super::xattr;
use crate::attributes;
use crate::dosattrib::{self, DosInfo};

/// Length in bytes of a block in `st_blocks`.
const BLOCK: u64 = 512;

impl Posix {
    /// The metadata of a file under a name.
    pub(super) fn metadata(&self, of: FileRef<'_>, stat: &Stat, name: &str) -> Metadata {
        let stored = stored(of, stat);
        let mut metadata = self.metadata_with(of.volume, stat, stored, name);
        if reparse::is_stored(&metadata) {
            reparse::describe(&mut metadata, reparse::read_kind(of));
        }
        metadata
    }

    /// The metadata of a file under a name, with the given DOS attributes. The tag of a stored
    /// reparse point is missing.
    pub(super) fn metadata_with(
        &self,
        volume: &Volume,
        stat: &Stat,
        stored: Option<DosInfo>,
        name: &str,
    ) -> Metadata {
        let kind = kind_of(stat);
        let DosInfo {
            attributes,
            created,
        } = stored.unwrap_or_default();
        let dos_attributes = attributes.unwrap_or_else(|| attributes_of_mode(volume, stat));
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
            volume: volume.id,
            kind,
            attributes: attributes::shown(dos_attributes, kind, name, self.options.hide_dot_files)
                | compression::attribute(stat),
            stored: attributes::settable(dos_attributes),
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
            posix_type: PosixMode::from_unix(stx_mode.into()).file_type(),
            uid: stx_uid,
            gid: stx_gid,
            reparse_tag: reparse::tag_of_kind(kind),
        }
    }
}

/// Stores DOS attributes and creation time. The right was checked when the file was opened. The
/// kernel requires more than Windows does: an owner without write permission may not set an
/// extended attribute. So the server stores them as root, as Samba does.
pub(super) fn store(of: FileRef<'_>, info: DosInfo) -> Result<(), Errno> {
    let value = info.encode();
    let set = || xattr::set(of, dosattrib::NAME, &value, XattrFlags::empty());
    xattr::as_permitted(of, set)
}

/// The attributes of a file without stored ones. On a file system without extended attributes, a
/// missing write permission of the owner means READONLY. Otherwise the file has no attributes, as
/// in Samba.
fn attributes_of_mode(volume: &Volume, stat: &Stat) -> FileAttributes {
    let is_writable = stat.0.stx_mode & 0o200 != 0;
    match volume.stores_attributes || is_writable {
        true => FileAttributes::NONE,
        false => FileAttributes::READONLY,
    }
}

/// The stored DOS attributes of a file. They are metadata of the server, not contents: a user
/// without read permission may receive them, as it receives the times.
pub(super) fn stored(of: FileRef<'_>, stat: &Stat) -> Option<DosInfo> {
    if !of.volume.stores_attributes || !supports_attributes(stat) {
        return None;
    }
    let mut value = [0; dosattrib::MAX_LEN];
    let read = || xattr::get(of, dosattrib::NAME, &mut value);
    let length = or_as_server(of.token, read).ok()?;
    DosInfo::decode(&value[..length])
}

/// The creation time; on a file system without it, the earliest known time.
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
