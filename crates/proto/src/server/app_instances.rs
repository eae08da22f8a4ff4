//! The opens of application instances. \[MS-SMB2\] 3.3.5.9.13
//!
//! An application that moves to another client, such as a virtual machine, opens its files there
//! before the server has noticed the end of the first client.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};

use spin::Mutex;
use wire::create_context::AppInstanceVersion;
use wire::{FileId, Guid};

use crate::file::{FileKey, LocalOpen};
use crate::server::ledger::User;

/// The application instance that a CREATE names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AppInstance {
    pub(crate) id: Guid,
    pub(crate) version: Option<AppInstanceVersion>,
}

/// An open of an application instance.
#[derive(Clone, Debug)]
pub(crate) struct InstanceOpen {
    pub(crate) id: FileId,
    pub(crate) key: FileKey,
    pub(crate) file: LocalOpen,
    /// The user that made it.
    pub(crate) owner: Arc<User>,
    /// The ClientGuid of the client that made it.
    pub(crate) client: Guid,
    pub(crate) version: Option<AppInstanceVersion>,
}

/// The newest open of each application instance.
#[derive(Debug, Default)]
pub(crate) struct AppInstances {
    opens: Mutex<BTreeMap<Guid, (u64, InstanceOpen)>>,
    last: AtomicU64,
}

/// The entry of an open in the table. Dropping it removes the entry.
#[derive(Debug)]
pub(crate) struct InstanceEntry {
    table: Arc<AppInstances>,
    id: Guid,
    number: u64,
}

impl AppInstances {
    /// Returns the newest open of an application instance.
    pub(crate) fn find(&self, id: Guid) -> Option<InstanceOpen> {
        let opens = self.opens.lock();
        opens.get(&id).map(|(_, open)| open.clone())
    }

    /// Enters an open, which keeps the entry. It replaces an older one of the instance.
    pub(crate) fn enter(self: &Arc<Self>, id: Guid, open: InstanceOpen) -> InstanceEntry {
        let number = self.last.fetch_add(1, Ordering::Relaxed);
        self.opens.lock().insert(id, (number, open));
        InstanceEntry {
            table: self.clone(),
            id,
            number,
        }
    }
}

impl Drop for InstanceEntry {
    fn drop(&mut self) {
        let mut opens = self.table.opens.lock();
        if opens
            .get(&self.id)
            .is_some_and(|(number, _)| *number == self.number)
        {
            opens.remove(&self.id);
        }
    }
}
