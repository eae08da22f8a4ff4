//! Generic access rights of files, and the specific rights that they stand for. \[MS-SMB2\]
//! 2.2.13.1, \[MS-DTYP\] 2.4.3

use super::acl::{Ace, Acl};
use super::descriptor::SecurityDescriptor;
use crate::access::AccessMask;

/// The pairs of a generic right and the specific rights of a file that it stands for.
const MAPPING: [(AccessMask, AccessMask); 4] = [
    (AccessMask::GENERIC_READ, AccessMask::FILE_GENERIC_READ),
    (AccessMask::GENERIC_WRITE, AccessMask::FILE_GENERIC_WRITE),
    (
        AccessMask::GENERIC_EXECUTE,
        AccessMask::FILE_GENERIC_EXECUTE,
    ),
    (AccessMask::GENERIC_ALL, AccessMask::FILE_ALL_ACCESS),
];

impl AccessMask {
    /// FILE_GENERIC_READ: the specific rights that GENERIC_READ stands for.
    pub const FILE_GENERIC_READ: Self = Self(0x0012_0089);
    /// FILE_GENERIC_WRITE: the specific rights that GENERIC_WRITE stands for.
    pub const FILE_GENERIC_WRITE: Self = Self(0x0012_0116);
    /// FILE_GENERIC_EXECUTE: the specific rights that GENERIC_EXECUTE stands for.
    pub const FILE_GENERIC_EXECUTE: Self = Self(0x0012_00A0);
    /// FILE_ALL_ACCESS: all specific rights of a file, for which GENERIC_ALL stands.
    pub const FILE_ALL_ACCESS: Self = Self(0x001F_01FF);

    /// Returns the mask with the specific rights of a file instead of the generic ones.
    #[must_use]
    pub fn without_generic(self) -> Self {
        MAPPING.iter().fold(self, |mask, (generic, specific)| {
            match mask.contains(*generic) {
                true => mask.without(*generic) | *specific,
                false => mask,
            }
        })
    }
}

impl Ace {
    /// Returns the entry with the specific rights of a file instead of the generic ones. An entry
    /// of a type without a decoded mask does not change.
    #[must_use]
    fn without_generic(self) -> Self {
        match self {
            Self::Basic {
                ace_type,
                flags,
                mask,
                sid,
            } => Self::Basic {
                ace_type,
                flags,
                mask: mask.without_generic(),
                sid,
            },
            other @ Self::Other { .. } => other,
        }
    }
}

impl Acl {
    /// Returns the list with the specific rights of a file instead of the generic ones, in all
    /// entries.
    #[must_use]
    pub fn without_generic(&self) -> Self {
        self.map(Ace::without_generic)
    }
}

impl SecurityDescriptor {
    /// Replaces the generic rights in both lists by the specific rights of a file. Servers do so
    /// before they store a descriptor: smbtorture smb2.acls-with-sysacl.GENERIC.
    pub fn map_generic(&mut self) {
        self.dacl = self.dacl.as_ref().map(Acl::without_generic);
        self.sacl = self.sacl.as_ref().map(Acl::without_generic);
    }
}
