//! The security descriptor that stands for a Unix owner, group and mode.

use super::acl::{Ace, AceFlags, Acl};
use super::descriptor::{DescriptorControl, SecurityDescriptor};
use super::sid::Sid;
use crate::access::AccessMask;

/// What r allows: FILE_GENERIC_READ. \[MS-SMB2\] 2.2.13.1
const READ: AccessMask = AccessMask(0x0012_0089);
/// What w allows: FILE_GENERIC_WRITE.
const WRITE: AccessMask = AccessMask(0x0012_0116);
/// What x allows: FILE_GENERIC_EXECUTE.
const EXECUTE: AccessMask = AccessMask(0x0012_00A0);
/// What rwx allows: everything, as by Samba's default "acl map full control = yes".
const ALL: AccessMask = AccessMask(0x001F_01FF);

impl SecurityDescriptor {
    /// Owner, group and mode as Samba presents them where a file has no ACL: one entry each for
    /// owner, group and everyone, with the SIDs S-1-22-1-uid and S-1-22-2-gid. The list is
    /// protected: a mode is not inherited. There are no entries that deny, so that a mode like
    /// 0604 shows the group more than it has.
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

/// What three bits of a mode allow.
fn mask_of(bits: u32, is_directory: bool) -> AccessMask {
    if bits == 0o7 {
        // The right to delete a file comes from its directory.
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
        // Who may write a directory may delete what is in it.
        if is_directory {
            mask |= AccessMask::FILE_DELETE_CHILD;
        }
    }
    if bits & 0o1 != 0 {
        mask |= EXECUTE;
    }
    mask
}
