//! The security descriptor that represents a Unix owner, group and mode.

use super::acl::{Ace, AceFlags, Acl};
use super::descriptor::{DescriptorControl, SecurityDescriptor};
use super::sid::Sid;
use crate::access::AccessMask;

/// Access rights for r.
const READ: AccessMask = AccessMask::FILE_GENERIC_READ;
/// Access rights for w.
const WRITE: AccessMask = AccessMask::FILE_GENERIC_WRITE;
/// Access rights for x.
const EXECUTE: AccessMask = AccessMask::FILE_GENERIC_EXECUTE;
/// Access rights for rwx: all, as in Samba with its default "acl map full control = yes".
const ALL: AccessMask = AccessMask::FILE_ALL_ACCESS;

impl SecurityDescriptor {
    /// Makes the descriptor that represents a Unix owner, group and mode, as Samba does for a file
    /// without an access control list. `mode` has the permission bits of chmod(2). `is_directory`
    /// adds the rights to delete entries of a directory. One allowing entry each applies to owner,
    /// group and all users, with the SIDs S-1-22-1-uid and S-1-22-2-gid. The DACL is protected,
    /// because files do not inherit a mode.
    ///
    /// The list has no denying entries, so for a mode such as 0604 it shows more rights of the
    /// group than the mode grants.
    pub fn from_unix_mode(uid: u32, gid: u32, mode: u32, is_directory: bool) -> Self {
        let owner = Sid::unix_user(uid);
        let group = Sid::unix_group(gid);
        let mut dacl = Acl::new();
        for (sid, shift) in [(owner, 6), (group, 3), (Sid::EVERYONE, 0)] {
            let mask = AccessMask::from_unix_permissions(mode >> shift, is_directory);
            let fits = dacl.push(Ace::allow(sid, mask, AceFlags::NONE));
            assert!(fits, "three entries fit in a list");
        }
        Self {
            control: DescriptorControl::SELF_RELATIVE
                | DescriptorControl::DACL_PRESENT
                | DescriptorControl::DACL_PROTECTED,
            resource_manager_control: 0,
            owner: Some(owner),
            group: Some(group),
            dacl: Some(dacl),
            sacl: None,
        }
    }
}

impl AccessMask {
    /// Returns the access rights that stand for three permission bits of Unix: 4 for read, 2 for
    /// write, 1 for execute. Higher bits are ignored. `is_directory` adds the rights to delete
    /// entries of a directory.
    pub fn from_unix_permissions(bits: u32, is_directory: bool) -> Self {
        let bits = bits & 0o7;
        if bits == 0o7 {
            // The directory of a file grants the right to delete it.
            return match is_directory {
                true => ALL,
                false => ALL.without(Self::DELETE),
            };
        }
        let mut mask = Self::NONE;
        if bits & 0o4 != 0 {
            mask |= READ;
        }
        if bits & 0o2 != 0 {
            mask |= WRITE;
            // A user with write access to a directory may delete its entries.
            if is_directory {
                mask |= Self::FILE_DELETE_CHILD;
            }
        }
        if bits & 0o1 != 0 {
            mask |= EXECUTE;
        }
        mask
    }
}
