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

/// The permission bits of chmod(2).
const PERMISSIONS: u32 = 0o7777;

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

    /// Makes the descriptor by which a client of the SMB3 POSIX extensions changes the mode of a
    /// file, as cifs.ko sends it: a DACL of one entry, which has no rights, for the SID
    /// S-1-5-88-3-mode. `mode` has the permission bits of chmod(2); higher bits are ignored.
    pub fn change_of_mode(mode: u32) -> Self {
        let sid = Sid::nfs_mode(mode & PERMISSIONS);
        let mut dacl = Acl::new();
        let fits = dacl.push(Ace::allow(sid, AccessMask::NONE, AceFlags::NONE));
        assert!(fits, "one entry fits in a list");
        Self {
            control: DescriptorControl::SELF_RELATIVE | DescriptorControl::DACL_PRESENT,
            dacl: Some(dacl),
            ..Self::default()
        }
    }

    /// Returns the new mode if the descriptor is a [`change_of_mode`](Self::change_of_mode): the
    /// permission bits of chmod(2). `None` for a DACL with other entries.
    pub fn to_change_of_mode(&self) -> Option<u32> {
        match self.dacl.as_ref()?.aces() {
            [Ace::Basic { sid, .. }] => sid.to_unix_mode().map(|mode| mode & PERMISSIONS),
            _ => None,
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

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn a_change_of_the_mode_is_one_entry() {
        let descriptor = SecurityDescriptor::change_of_mode(0o104_755);
        assert_eq!(descriptor.to_change_of_mode(), Some(0o4755));
        let mut bytes = Vec::new();
        descriptor.encode(&mut bytes);
        assert_eq!(SecurityDescriptor::decode(&bytes).as_ref(), Ok(&descriptor));
        let other = SecurityDescriptor::from_unix_mode(1, 2, 0o644, false);
        assert_eq!(other.to_change_of_mode(), None);
        assert_eq!(SecurityDescriptor::default().to_change_of_mode(), None);
    }

    #[test]
    fn sids_of_the_nfs_service_lead_back() {
        assert_eq!(Sid::nfs_user(7).to_unix_user(), Some(7));
        assert_eq!(Sid::nfs_group(8).to_unix_group(), Some(8));
        assert_eq!(Sid::nfs_mode(0o644).to_unix_mode(), Some(0o644));
    }
}
