//! The owner and the group of a file in Unix.

/// The owner and the group of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owners {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl Owners {
    /// No user and no group: these numbers are not valid.
    pub(crate) const NONE: Self = Self {
        uid: u32::MAX,
        gid: u32::MAX,
    };
}
