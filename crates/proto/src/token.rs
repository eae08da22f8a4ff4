//! Whose rights a file operation has.

use alloc::vec::Vec;

/// Unix credentials that a session's file operations run with. The driver makes them from the
/// account, the core carries them, the file system applies them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token {
    /// User id.
    pub uid: u32,
    /// Primary group id.
    pub gid: u32,
    /// Further groups.
    pub groups: Vec<u32>,
}

impl Token {
    /// Whether this is the user that may do everything.
    pub fn is_root(&self) -> bool {
        self.uid == 0
    }

    /// Whether the group is the primary one or one of the further ones.
    pub fn has_group(&self, gid: u32) -> bool {
        self.gid == gid || self.groups.contains(&gid)
    }
}
