//! The owner and the group of a file in Unix.

/// The owner and the group of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owners {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}
