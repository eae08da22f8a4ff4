//! The Unix permissions or the security descriptor that refuse an access, for the log.

use std::fmt;

use proto::path::SharePath;
use wire::access::AccessMask;
use wire::security::Sid;

/// The file or directory with the Unix permissions or the descriptor that refuse an access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// Path from the root of the share. It can be a directory above the file of the access.
    pub path: SharePath,
    /// The missing permission; `None` if the user has all permissions that the access needs: then
    /// something else refuses it, such as the attribute READONLY.
    pub missing: Option<Permission>,
    /// The rights that the security descriptor does not grant; `None` if it does not refuse the
    /// access.
    pub by_descriptor: Option<DescriptorDenial>,
    /// Type and permissions of the file or directory (st_mode).
    pub mode: u32,
    /// Unix user id (uid) of the owner.
    pub uid: u32,
    /// Unix id (gid) of the group.
    pub gid: u32,
}

/// The refusal of an access by a security descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DescriptorDenial {
    /// The missing rights.
    pub rights: AccessMask,
    /// The first entry that denies one of them: its number in the DACL, from 1, and its SID. `None`
    /// if no entry for the user names them.
    pub entry: Option<(usize, Sid)>,
}

/// A Unix permission of a user on a file or directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    /// `x` of a directory.
    Search,
    /// `r`.
    Read,
    /// `w`.
    Write,
    /// To be the owner, as chmod(2) requires. In a directory with the sticky bit, to own the
    /// directory or the file.
    Ownership,
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Search => "search",
            Self::Read => "read",
            Self::Write => "write",
            Self::Ownership => "ownership",
        })
    }
}
