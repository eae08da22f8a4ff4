//! The listeners of a worker.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

/// A listener of a worker, and the task that accepts its connections.
pub(super) struct Accepting {
    pub(super) task: ring::JoinHandle<()>,
    /// Only for QUIC.
    pub(super) quic: Option<QuicAccepting>,
}

/// A QUIC listener of a worker. A clone is the same one.
#[derive(Clone)]
pub(super) struct QuicAccepting {
    pub(super) listener: net::quic::Listener,
    /// It accepts clients. Otherwise it refuses them.
    pub(super) accepts: Rc<Cell<bool>>,
    /// Each connection has a clone.
    pub(super) uses: Arc<()>,
}
