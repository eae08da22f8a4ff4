//! Quotas that all sessions of one connection share. Otherwise a client could multiply the limits
//! of a session by the number of its sessions.
//!
//! A session counts for the connection that created it, because its channels change.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicUsize, Ordering};

use wire::Status;

use crate::server::ledger::{Charge, Resource, User};

/// The quotas of the sessions that one connection created.
#[derive(Clone, Debug, Default)]
pub(crate) struct Quotas {
    pub(crate) opens: Quota,
    pub(crate) pipes: Quota,
    pub(crate) watches: Quota,
}

/// The number of objects of one kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Quota(Arc<AtomicUsize>);

/// One object. Dropping the guard decrements the number.
#[derive(Debug)]
pub(crate) struct QuotaGuard {
    quota: Quota,
    /// The same object in the sums of the user.
    charge: Option<Charge>,
}

impl Quota {
    /// Counts one more object of a connection and of a user. Fails with INSUFFICIENT_RESOURCES if
    /// the connection has `limit` already, and with the status of the resource if the user has as
    /// many as allowed.
    pub(crate) fn add_for(
        &self,
        limit: usize,
        user: &Arc<User>,
        resource: Resource,
    ) -> Result<QuotaGuard, Status> {
        let mut guard = self.add(limit)?;
        guard.charge = Some(user.charge(resource, 1)?);
        Ok(guard)
    }

    /// Counts one more object. Fails with INSUFFICIENT_RESOURCES if there are `limit` already.
    pub(crate) fn add(&self, limit: usize) -> Result<QuotaGuard, Status> {
        let before = self.0.fetch_add(1, Ordering::Relaxed);
        // The guard decrements the number on drop, also on the error path.
        let guard = QuotaGuard {
            quota: self.clone(),
            charge: None,
        };
        match before < limit {
            true => Ok(guard),
            false => Err(Status::INSUFFICIENT_RESOURCES),
        }
    }
}

impl Drop for QuotaGuard {
    fn drop(&mut self) {
        self.quota.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_guard_frees_its_place_and_a_failure_takes_none() {
        let quota = Quota::default();
        let first = quota.add(2).expect("below the limit");
        let _second = quota.add(2).expect("below the limit");
        for _ in 0..3 {
            assert_eq!(quota.add(2).err(), Some(Status::INSUFFICIENT_RESOURCES));
        }
        drop(first);
        let _third = quota.add(2).expect("one guard was dropped");
        assert!(quota.add(2).is_err());
    }
}
