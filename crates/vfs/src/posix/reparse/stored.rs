//! Stored reparse points.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use proto::file::{FileKind, Metadata};
use proto::token::Token;
use rustix::fs::{getxattr, lgetxattr};
use rustix::io::Errno;
use wire::access::FileAttributes;
use wire::posix::PosixFileType;
use wire::reparse::{REPARSE_MAX, ReparsePoint, ReparseTag};

use crate::posix::file_ref::FileRef;
use crate::posix::stat::{by_descriptor, or_as_server};

/// The attribute with the encoded reparse point. Samba uses the same one.
pub(super) const NAME: &str = "user.SmbReparse";

/// The tag of a file that is a reparse point for its kind.
pub(in crate::posix) fn tag_of_kind(kind: FileKind) -> ReparseTag {
    match kind {
        FileKind::Link => ReparseTag::SYMLINK,
        FileKind::Special => ReparseTag::NFS,
        FileKind::File | FileKind::Directory => ReparseTag::NONE,
    }
}

/// Whether a file has a stored reparse point.
pub(in crate::posix) fn is_stored(metadata: &Metadata) -> bool {
    let can_have_one = matches!(metadata.kind, FileKind::File | FileKind::Directory);
    can_have_one && metadata.attributes.contains(FileAttributes::REPARSE_POINT)
}

/// The kind of a stored reparse point.
#[derive(Clone, Copy)]
pub(in crate::posix) struct StoredKind {
    tag: ReparseTag,
    /// The type of the Unix file that it stands for.
    posix_type: Option<PosixFileType>,
}

/// Completes the metadata of a file with the kind of its stored reparse point. Without a valid one,
/// the file is none.
pub(in crate::posix) fn describe(metadata: &mut Metadata, kind: Option<StoredKind>) {
    match kind {
        Some(StoredKind { tag, posix_type }) => {
            metadata.reparse_tag = tag;
            metadata.posix_type = posix_type.unwrap_or(metadata.posix_type);
        }
        None => {
            let reparse = FileAttributes::REPARSE_POINT;
            metadata.attributes = metadata.attributes.without(reparse);
        }
    }
}

/// The tag of the stored reparse point of a file.
pub(in crate::posix) fn read_tag(of: FileRef<'_>) -> Option<ReparseTag> {
    tag_of(&read(of.fd, of.token).ok()?)
}

/// The kind of the stored reparse point of a file.
pub(in crate::posix) fn read_kind(of: FileRef<'_>) -> Option<StoredKind> {
    kind_of(&read(of.fd, of.token).ok()?)
}

/// The kind of the stored reparse point of the file at a path of this machine, which is not
/// followed.
pub(in crate::posix) fn read_kind_at(path: &[u8], token: &Arc<Token>) -> Option<StoredKind> {
    let read = || {
        let mut data = vec![0; REPARSE_MAX];
        let length = lgetxattr(path, NAME, &mut data[..])?;
        data.truncate(length);
        Ok(data)
    };
    kind_of(&or_as_server(token, read).ok()?)
}

fn kind_of(data: &[u8]) -> Option<StoredKind> {
    let reparse = ReparsePoint::decode(data).ok()?;
    Some(StoredKind {
        tag: reparse.tag,
        posix_type: reparse.posix_type(),
    })
}

pub(super) fn tag_of(data: &[u8]) -> Option<ReparseTag> {
    ReparsePoint::decode(data).ok().map(|reparse| reparse.tag)
}

/// The stored reparse point of a file.
///
/// It is metadata, which every user receives that may look the name up.
pub(super) fn read(fd: &OwnedFd, token: &Arc<Token>) -> Result<Vec<u8>, Errno> {
    let read = || {
        let mut data = vec![0; REPARSE_MAX];
        let length = getxattr(by_descriptor(fd), NAME, &mut data[..])?;
        data.truncate(length);
        Ok(data)
    };
    or_as_server(token, read)
}
