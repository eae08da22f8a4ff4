//! The metadata of files that a plain copy leaves behind: named streams, extended attributes,
//! security descriptors, and on this machine DOS attributes and times of creation.
//!
//! On a server they are parts of a file. On this machine they are extended attributes in the format
//! of Samba (see [`local`]), so that an upload restores everything that a download found.

mod extras;
mod link;
mod local;
mod losses;
mod remote;

use smbeam_client::{SecurityDescriptor, Wait as _};

pub(crate) use extras::{Descriptor, Extras, is_only_mode, is_same_descriptor};
pub(crate) use link::Link;
pub(crate) use losses::Losses;
pub(crate) use remote::{open_stream, writing};

use crate::failure::Outcome;
use crate::file_path::{FileInfo, FilePath};

/// Longest stream in bytes that is read to compare it with another one of the same length.
pub(crate) const COMPARED_MAX: u64 = 1 << 20;

/// The result of one step that keeps a part of the metadata. A failure is a loss, not the end.
pub(crate) type Kept = Outcome;

impl FilePath {
    /// Reads the metadata. Parts that a server does not have are empty.
    pub(crate) fn extras(&self) -> Outcome<Extras> {
        match self {
            Self::Local(path) => local::read(path),
            Self::Remote(remote) => remote::read(remote),
        }
    }

    /// Reads a whole stream of `size` bytes.
    pub(crate) fn read_stream(&self, name: &str, size: u64) -> Outcome<Vec<u8>> {
        match self {
            Self::Local(path) => local::read_stream(path, name),
            Self::Remote(remote) => remote::read_stream(remote, name, size),
        }
    }

    /// Creates a stream, or replaces its content.
    pub(crate) fn write_stream(&self, name: &str, bytes: Vec<u8>) -> Kept {
        match self {
            Self::Local(path) => local::write_stream(path, name, &bytes),
            Self::Remote(remote) => remote::write_stream(remote, name, bytes),
        }
    }

    /// Removes a stream.
    pub(crate) fn remove_stream(&self, name: &str) -> Kept {
        match self {
            Self::Local(path) => local::remove_stream(path, name),
            Self::Remote(remote) => {
                let removed = remote.share.remove_stream(&remote.path, name);
                removed.wait().map_err(remote.failed())
            }
        }
    }

    /// Sets an extended attribute, or removes it if the value is empty.
    pub(crate) fn set_attribute(&self, name: &[u8], value: &[u8]) -> Kept {
        match self {
            Self::Local(path) => local::set_attribute(path, name, value),
            Self::Remote(remote) => remote::set_attribute(remote, name, value),
        }
    }

    /// Sets owner, group and DACL. Returns the part that the target does not keep.
    pub(crate) fn set_descriptor(&self, descriptor: &SecurityDescriptor) -> Descriptor {
        match self {
            Self::Local(path) => Descriptor::of(local::set_descriptor(path, descriptor)),
            Self::Remote(remote) => remote::set_descriptor(remote, descriptor),
        }
    }

    /// The metadata of a local file, with the DOS attributes and the time of creation that a
    /// download stored. `true` if there are any, so that they are like those of a server.
    pub(crate) fn stored_info(&self, info: &FileInfo) -> (FileInfo, bool) {
        match self {
            Self::Local(path) => local::stored_info(path, info),
            Self::Remote(_) => (*info, true),
        }
    }

    /// Stores the DOS attributes and the time of creation with a local file.
    pub(crate) fn store_info(&self, info: &FileInfo) -> Kept {
        match self {
            Self::Local(path) => local::store_info(path, info),
            Self::Remote(_) => Ok(()),
        }
    }
}
