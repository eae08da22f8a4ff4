//! The open policies of one pipe. A policy has no state but that it is open.

use alloc::collections::BTreeSet;

use wire::rpc::FaultStatus;
use wire::rpc::lsarpc::PolicyHandle;
use wire::{Guid, Status};

/// Maximum number of open policies of a pipe. Clients open one.
const POLICIES_MAX: usize = 64;

/// The open policies of one pipe.
#[derive(Debug, Default)]
pub(in crate::server::pipe) struct Policies {
    open: BTreeSet<PolicyHandle>,
    /// Number of policies that were ever opened.
    count: u64,
}

impl Policies {
    /// Opens a policy.
    ///
    /// # Errors
    /// INSUFFICIENT_RESOURCES if the client keeps too many open.
    pub(super) fn open(&mut self) -> Result<PolicyHandle, Status> {
        if self.open.len() >= POLICIES_MAX {
            return Err(Status::INSUFFICIENT_RESOURCES);
        }
        self.count += 1;
        let mut uuid = [0; 16];
        uuid[..8].copy_from_slice(&self.count.to_le_bytes());
        let policy = PolicyHandle {
            attributes: 0,
            uuid: Guid(uuid),
        };
        self.open.insert(policy);
        Ok(policy)
    }

    /// Checks that a policy is open on this pipe.
    pub(super) fn check(&self, policy: PolicyHandle) -> Result<(), FaultStatus> {
        match self.open.contains(&policy) {
            true => Ok(()),
            false => Err(FaultStatus::CONTEXT_MISMATCH),
        }
    }

    /// Closes a policy.
    pub(super) fn close(&mut self, policy: PolicyHandle) -> Result<(), FaultStatus> {
        match self.open.remove(&policy) {
            true => Ok(()),
            false => Err(FaultStatus::CONTEXT_MISMATCH),
        }
    }
}
