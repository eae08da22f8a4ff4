//! The Unix permissions that refuse an access, for the log.

use std::fmt;

use proto::path::SharePath;

/// The file or directory with the Unix permissions that refuse an access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// Path from the root of the share. It can be a directory above the file of the access.
    pub path: SharePath,
    /// The missing permission; `None` if the user has all permissions that the access needs: then
    /// something else refuses it, such as the attribute READONLY.
    pub missing: Option<Permission>,
    /// Type and permissions of the file or directory (st_mode).
    pub mode: u32,
    /// Unix user id (uid) of the owner.
    pub uid: u32,
    /// Unix id (gid) of the group.
    pub gid: u32,
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
