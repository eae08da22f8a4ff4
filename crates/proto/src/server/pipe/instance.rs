//! An instance of a named pipe: the open of a pipe by one client.

use spin::Mutex;
use wire::{FileId, TreeId};

use super::calls::Policies;
use super::service::Service;
use super::state::State;
use crate::server::notices::Notices;
use crate::server::quota::QuotaGuard;

/// An instance of a named pipe, in the session's table of pipes from CREATE to CLOSE.
#[derive(Debug)]
pub(crate) struct Pipe {
    /// Counts the pipe against the limit of its connection.
    _quota: QuotaGuard,
    pub(crate) id: FileId,
    pub(crate) tree: TreeId,
    pub(super) service: Service,
    /// Locked with no other lock.
    pub(super) policies: Mutex<Policies>,
    pub(super) state: Mutex<State>,
}

impl Pipe {
    /// A new instance. `group` becomes its RPC association group.
    pub(super) fn new(
        place: QuotaGuard,
        id: FileId,
        tree: TreeId,
        service: Service,
        group: u32,
    ) -> Self {
        Self {
            _quota: place,
            id,
            tree,
            service,
            policies: Mutex::default(),
            state: Mutex::new(State::new(service, group)),
        }
    }

    /// The name of the pipe within IPC$.
    pub(crate) fn name(&self) -> &'static str {
        self.service.pipe()
    }

    /// Closes the pipe. Returns the notices that wake its waiting reads.
    pub(crate) fn end(&self) -> Notices {
        self.state.lock().end()
    }
}
