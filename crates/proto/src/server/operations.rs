//! The operations that the server itself has requested.

use alloc::collections::BTreeSet;

use crate::id::OpId;
use crate::server::op_ids::OpIds;

/// The operations of the server that are in progress. Their OpIds are unique among them.
#[derive(Debug, Default)]
pub(crate) struct Operations {
    pub(crate) op_ids: OpIds,
    /// Operations that close an open. The server requests no other operations.
    pub(crate) closing: BTreeSet<OpId>,
}
