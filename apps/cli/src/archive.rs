//! The metadata of files that a plain copy leaves behind: named streams, extended attributes,
//! security descriptors, and on this machine DOS attributes and times of creation.
//!
//! On a server they are parts of a file. On this machine they are extended attributes in the format
//! of Samba (see [`local`]), so that an upload restores everything that a download found.

mod link;
mod local;
mod losses;
mod remote;

use std::collections::BTreeMap;

use smbeam_client::{Ace, AceFlags, DescriptorControl, SecurityDescriptor, Wait as _};

pub(crate) use link::Link;
pub(crate) use losses::Losses;
pub(crate) use remote::{open_stream, writing};

use crate::failure::{Failure, Outcome};
use crate::file_path::{FileInfo, FilePath};

/// Longest stream in bytes that is read to compare it with another one of the same length.
pub(crate) const COMPARED_MAX: u64 = 1 << 20;

/// The metadata of a file.
#[derive(Debug, Default)]
pub(crate) struct Extras {
    /// Names and lengths in bytes of the named streams.
    pub(crate) streams: BTreeMap<String, u64>,
    /// Extended attributes by their names in upper case, each with its name and value.
    pub(crate) attributes: BTreeMap<Vec<u8>, (Vec<u8>, Vec<u8>)>,
    /// Owner, group and DACL; `None` if there is no descriptor.
    pub(crate) descriptor: Option<SecurityDescriptor>,
}

impl Extras {
    fn insert_attribute(&mut self, name: Vec<u8>, value: Vec<u8>) {
        let key = name.to_ascii_uppercase();
        self.attributes.insert(key, (name, value));
    }
}

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

/// The result of setting a descriptor: the parts that the target does not keep, with the reasons.
#[derive(Debug)]
pub(crate) enum Descriptor {
    /// Everything is kept.
    Whole,
    /// Owner and group are not kept.
    WithoutOwner(Failure),
    /// Nothing is kept.
    Nothing(Failure),
    /// The target accepted the descriptor, and stores another one.
    Changed,
}

impl Descriptor {
    fn of(set: Outcome) -> Self {
        match set {
            Ok(()) => Self::Whole,
            Err(failure) => Self::Nothing(failure),
        }
    }
}

/// Whether two descriptors have the same owner, group and entries. Servers compute inherited
/// entries and the control flags themselves.
pub(crate) fn is_same_descriptor(one: &SecurityDescriptor, other: &SecurityDescriptor) -> bool {
    let entries = |descriptor: &SecurityDescriptor| {
        let list = descriptor.dacl.as_ref()?;
        let is_own = |ace: &&Ace| !ace.flags().contains(AceFlags::INHERITED);
        Some(
            list.aces()
                .iter()
                .filter(is_own)
                .cloned()
                .collect::<Vec<_>>(),
        )
    };
    let protection = |descriptor: &SecurityDescriptor| {
        let flag = DescriptorControl::DACL_PROTECTED;
        descriptor.control.contains(flag)
    };
    one.owner == other.owner
        && one.group == other.group
        && entries(one) == entries(other)
        && protection(one) == protection(other)
}
