//! Watches the memory of the process, and logs the refused requests of users.

use std::rc::Rc;

use proto::server::ledger::{Refusal, Resource, Shortage};
use tracing::{info, warn};

use super::Worker;
use crate::codes::{Reason as _, RefusedRequest};
use crate::counters::RefusedConnection;
use crate::memory;

impl Worker {
    /// Measures the memory every second. Runs on one worker until the worker ends.
    pub(super) async fn watch_memory(self: Rc<Self>) {
        let shared = Rc::clone(&self.context).shared.clone();
        let ledger = shared.core.ledger();
        let mut before = Shortage::None;
        loop {
            self.handle().sleep(memory::INTERVAL).await;
            let limit = shared.live.latest().memory_max;
            if let Some(used) = memory::used() {
                let shortage = memory::shortage(used, limit);
                ledger.set_shortage(shortage);
                (shared.gate).refuse_all(shortage >= Shortage::NewConnections);
                if shortage != before {
                    log_shortage(shortage, used, limit);
                }
                before = shortage;
            }
            ledger.take_refusals().iter().for_each(log_refusal);
        }
    }
}

fn log_shortage(shortage: Shortage, used: usize, limit: usize) {
    let (used_mb, limit_mb) = (used >> 20, limit >> 20);
    let effect = match shortage {
        Shortage::None => {
            info!(used_mb, limit_mb, "memory is no longer short");
            return;
        }
        Shortage::NewConnections => "new connections are refused",
        Shortage::Responses => "clients wait: one request of a connection runs at a time",
        Shortage::NewObjects => "new opens, watches and locks are refused",
    };
    let code = RefusedConnection::Memory.code();
    warn!(
        used_mb,
        limit_mb, effect, code, "memory is short (limits.memory_max_mb)"
    );
}

/// One line for all refusals of a user and a limit since the last measurement.
fn log_refusal(refusal: &Refusal) {
    let Refusal {
        user,
        resource,
        count,
    } = refusal;
    let limit = key(*resource);
    let code = RefusedRequest::from(*resource).code();
    warn!(%user, limit, count, code, "requests refused: the user has reached a limit");
}

/// The key of the configuration that limits a resource.
fn key(resource: Resource) -> &'static str {
    match resource {
        Resource::Connections => "limits.connections_per_user",
        Resource::Opens => "limits.opens_per_user",
        Resource::Pipes => "limits.pipes_per_user",
        Resource::Watches => "limits.watches_per_user",
        Resource::Locks => "limits.locks_per_user",
        Resource::DisconnectedOpens => "limits.disconnected_opens_per_user",
        Resource::ResponseBytes => "limits.response_memory_mb",
    }
}
