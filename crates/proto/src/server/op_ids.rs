//! Numbers of operations.

use crate::id::OpId;

/// Allocates the [`OpId`]s of one connection, or of the server. No number is used twice.
#[derive(Debug, Default)]
pub(crate) struct OpIds {
    last: u64,
}

impl OpIds {
    /// A number that no other operation has.
    pub(crate) fn allocate(&mut self) -> OpId {
        self.last += 1;
        OpId(self.last)
    }
}
