//! The operations that the server itself has requested.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;

use crate::audit::Event;
use crate::file::LocalOpen;
use crate::id::OpId;
use crate::path::SharePath;
use crate::server::fsa::Close;
use crate::server::op_ids::OpIds;
use crate::server::open::Open;

/// The operations of the server that are in progress. Their OpIds are unique among them.
#[derive(Debug, Default)]
pub(crate) struct Operations {
    pub(crate) op_ids: OpIds,
    pub(crate) pending: BTreeMap<OpId, Pending>,
}

/// A file that no client has open and with its name being removed.
#[derive(Debug)]
pub(crate) struct Unlinked {
    pub(crate) open: Arc<Open>,
    /// The open that asked for the deletion.
    pub(crate) file: LocalOpen,
    pub(crate) path: SharePath,
    pub(crate) close: Close,
    /// The event of the removal for the audit log.
    pub(crate) event: Option<Box<Event>>,
}

/// An operation in progress.
#[derive(Debug)]
pub(crate) enum Pending {
    /// An open is being closed.
    Close,
    /// The name of a deleted file is being removed. Its opens are closed afterwards.
    Unlink(Box<Unlinked>),
}
