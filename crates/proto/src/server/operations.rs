//! The operations that the server itself has requested.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;

use crate::id::OpId;
use crate::server::close::Unlinked;
use crate::server::op_ids::OpIds;

/// The operations of the server that are in progress. Their OpIds are unique among them.
#[derive(Debug, Default)]
pub(crate) struct Operations {
    pub(crate) op_ids: OpIds,
    pub(crate) pending: BTreeMap<OpId, Pending>,
}

/// An operation in progress.
#[derive(Debug)]
pub(crate) enum Pending {
    /// An open is being closed.
    Close,
    /// The name of a deleted file is being removed. Its opens are closed afterwards.
    Unlink(Box<Unlinked>),
}
