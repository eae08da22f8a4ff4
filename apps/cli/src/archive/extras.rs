//! The metadata of a file, and the comparison of descriptors.

use std::collections::BTreeMap;

use smbeam_client::{Ace, AceFlags, DescriptorControl, SecurityDescriptor};
use wire::security::Sid;

use crate::failure::{Failure, Outcome};
use crate::unix::Unix;

/// The metadata of a file.
#[derive(Debug, Default)]
pub(crate) struct Extras {
    /// Names and lengths in bytes of the named streams.
    pub(crate) streams: BTreeMap<String, u64>,
    /// Extended attributes by their names in upper case, each with its name and value.
    pub(crate) attributes: BTreeMap<Vec<u8>, (Vec<u8>, Vec<u8>)>,
    /// Owner, group and DACL; `None` if there is no descriptor.
    pub(crate) descriptor: Option<SecurityDescriptor>,
    /// Mode, owner and group of Unix; `None` if the side does not have them.
    pub(crate) unix: Option<Unix>,
}

impl Extras {
    pub(super) fn insert_attribute(&mut self, name: Vec<u8>, value: Vec<u8>) {
        let key = name.to_ascii_uppercase();
        self.attributes.insert(key, (name, value));
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
    pub(super) fn of(set: Outcome) -> Self {
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

/// Whether the DACL has only entries for the owner, the group and everyone, as that of a file of
/// Unix without an access control list.
pub(crate) fn is_only_mode(descriptor: &SecurityDescriptor) -> bool {
    let is_of_mode = |ace: &Ace| match ace {
        Ace::Basic { sid, .. } => {
            let sid = Some(*sid);
            sid == descriptor.owner || sid == descriptor.group || sid == Some(Sid::EVERYONE)
        }
        Ace::Other { .. } => false,
    };
    let Some(list) = &descriptor.dacl else {
        return true;
    };
    list.aces().len() <= MODE_ENTRIES && list.aces().iter().all(is_of_mode)
}

/// Entries that express a mode: of the owner, the group and everyone.
const MODE_ENTRIES: usize = 3;
