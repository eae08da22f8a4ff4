//! The security descriptor that represents a Unix owner, group and mode.

use super::acl::{Ace, AceFlags, Acl};
use super::descriptor::{DescriptorControl, SecurityDescriptor};
use super::sid::Sid;
use crate::access::AccessMask;

/// Access rights for r: FILE_GENERIC_READ. \[MS-SMB2\] 2.2.13.1
const READ: AccessMask = AccessMask(0x0012_0089);
/// Access rights for w: FILE_GENERIC_WRITE.
const WRITE: AccessMask = AccessMask(0x0012_0116);
/// Access rights for x: FILE_GENERIC_EXECUTE.
const EXECUTE: AccessMask = AccessMask(0x0012_00A0);
/// Access rights for rwx: all, as in Samba with its default "acl map full control = yes".
const ALL: AccessMask = AccessMask(0x001F_01FF);

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
            let mask = mask_of(mode >> shift & 0o7, is_directory);
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

/// The access rights for three bits of a mode.
fn mask_of(bits: u32, is_directory: bool) -> AccessMask {
    if bits == 0o7 {
        // The directory of a file grants the right to delete it.
        return if is_directory {
            ALL
        } else {
            ALL.without(AccessMask::DELETE)
        };
    }
    let mut mask = AccessMask::NONE;
    if bits & 0o4 != 0 {
        mask |= READ;
    }
    if bits & 0o2 != 0 {
        mask |= WRITE;
        // A user with write access to a directory may delete its entries.
        if is_directory {
            mask |= AccessMask::FILE_DELETE_CHILD;
        }
    }
    if bits & 0o1 != 0 {
        mask |= EXECUTE;
    }
    mask
}
