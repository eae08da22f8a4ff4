//! Quota of pool buffers for the RDMA transfers of one connection.

use std::cell::Cell;
use std::rc::Rc;

use ring::{Signal, TaskQueue};

/// Most bytes of buffers for the RDMA transfers of one connection: eight of the largest transfers.
/// Without it, a client that requests more than its link carries would hold the buffers of all.
const MAX_BYTES: usize = 64 << 20;

/// Counts the bytes of buffers in RDMA transfers of one connection.
#[derive(Default)]
pub(super) struct RdmaQuota {
    reserved: Cell<usize>,
    /// Transfers that wait for bytes.
    waiting: TaskQueue,
    released: Signal,
}

/// Bytes of one transfer. They return to the quota on drop.
pub(super) struct RdmaReservation {
    quota: Rc<RdmaQuota>,
    bytes: usize,
}

impl RdmaQuota {
    /// Reserves bytes; `None` if that would exceed the quota, or if transfers wait for it. A single
    /// transfer may exceed it.
    pub(super) fn reserve(self: &Rc<Self>, bytes: usize) -> Option<RdmaReservation> {
        match self.waiting.is_empty() {
            true => self.take(bytes),
            false => None,
        }
    }

    fn take(self: &Rc<Self>, bytes: usize) -> Option<RdmaReservation> {
        let reserved = self.reserved.get();
        if reserved > 0 && reserved + bytes > MAX_BYTES {
            return None;
        }
        self.reserved.set(reserved + bytes);
        let quota = Rc::clone(self);
        Some(RdmaReservation { quota, bytes })
    }

    /// Reserves bytes. Waits until the quota has them and earlier transfers have theirs.
    pub(super) async fn reserve_or_wait(self: &Rc<Self>, bytes: usize) -> RdmaReservation {
        let place = self.waiting.enter();
        place.first().await;
        loop {
            if let Some(reservation) = self.take(bytes) {
                return reservation;
            }
            self.released.lower();
            self.released.raised().await;
        }
    }
}

impl Drop for RdmaReservation {
    fn drop(&mut self) {
        let reserved = &self.quota.reserved;
        reserved.set(reserved.get() - self.bytes);
        self.quota.released.raise();
    }
}
